package admin

import (
	"context"
	"fmt"
	"strings"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// kindCold is the kind of a plan that changes how much old data a group may read.
const kindCold = "cold"

// coldCells are the limits of brokers on how fast a group may read what is no longer
// in memory, in bytes a second as Apache counts them.
var coldCells = &cellKind[int64]{
	kind: kindCold, what: "cold read limit of group",
	read: func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]int64, error) {
		resp, err := c.ask(ctx, at.Addr, remoting.NewRequest(remoting.ReqGetColdDataFlowCtrInfo, nil))
		if err != nil {
			return nil, err
		}
		var body struct {
			ConfigTable map[string]int64 `json:"configTable"`
		}
		if len(resp.Body) > 0 {
			if err := fastjson.Unmarshal(resp.Body, &body); err != nil {
				return nil, fmt.Errorf("cannot read limits: %w", err)
			}
		}
		out := map[string]int64{}
		for _, group := range parts {
			if v, ok := body.ConfigTable[group]; ok {
				out[group] = v
			}
		}
		return out, nil
	},
	write: func(ctx context.Context, c *Client, w cellWrite[int64]) error {
		req := remoting.NewRequest(remoting.ReqRemoveColdDataFlowCtrConfig, nil)
		req.Body = []byte(w.Part)
		if w.Is != nil {
			req = remoting.NewRequest(remoting.ReqUpdateColdDataFlowCtrConfig, nil)
			req.Body = []byte(fmt.Sprintf("%s=%d\n", w.Part, *w.Is))
		}
		_, err := c.ask(ctx, w.At.Addr, req)
		return err
	},
}

// PlanColdLimit plans to limit how fast a group may read old data on the target's
// masters; a nil limit takes it away.
func (c *Client) PlanColdLimit(ctx context.Context, t Target, group string, limit *int64) (Plan, error) {
	if err := message.ValidateGroup(group); err != nil {
		return nil, err
	}
	if strings.ContainsAny(group, "=:#!") {
		return nil, invalidf("cannot limit group %q: the name cannot stand in the request", group)
	}
	if limit != nil && *limit < 0 {
		return nil, invalidf("cannot use cold read limit %d: it must be 0 or more", *limit)
	}
	title := "set the cold read limit of group " + group
	if limit == nil {
		title = "remove the cold read limit of group " + group
	}
	return coldCells.plan(ctx, c, onMasters(t), group, title, wanted[int64]{
		parts: []string{group},
		make:  func(Broker, string, *int64) (*int64, error) { return limit, nil },
	})
}
