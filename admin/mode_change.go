package admin

import (
	"context"
	"fmt"
	"strings"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// kindMode is the kind of a plan that changes how a group gets the messages of a topic.
const kindMode = "mode"

// Modes of consumption.
const (
	ModePull = "PULL"
	ModePop  = "POP"
)

// ModeState is how a group gets the messages of a topic.
type ModeState struct {
	Mode string `json:"mode" yaml:"mode"` // PULL or POP
	// Share is how many clients share a queue in pop mode; 0: every client reads all
	// queues.
	Share int32 `json:"shareQueues" yaml:"shareQueues"`
}

// String is the mode in words.
func (m ModeState) String() string {
	if m.Mode == ModePop {
		return fmt.Sprintf("pop, share %d", m.Share)
	}
	return strings.ToLower(m.Mode)
}

var modeCells = &cellKind[ModeState]{
	kind: kindMode, what: "consume mode",
	// A group of which nothing is said pulls.
	read: func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]ModeState, error) {
		body, err := askBody[remoting.MessageRequestModes](ctx, c, at.Addr, remoting.NewRequest(remoting.ReqGetAllMessageRequestMode, nil))
		if err != nil {
			return nil, err
		}
		out := map[string]ModeState{}
		for _, part := range parts {
			topic, group, _ := strings.Cut(part, "@")
			out[part] = ModeState{Mode: ModePull}
			if m, ok := body.Map[topic][group]; ok {
				out[part] = ModeState{m.Mode, m.PopShareQueueNum}
			}
		}
		return out, nil
	},
	write: func(ctx context.Context, c *Client, w cellWrite[ModeState]) error {
		topic, group, _ := strings.Cut(w.Part, "@")
		body, err := fastjson.Marshal(&remoting.MessageRequestMode{ConsumerGroup: group, Mode: w.Is.Mode, PopShareQueueNum: w.Is.Share, Topic: topic})
		if err != nil {
			return fmt.Errorf("cannot write consume mode: %w", err)
		}
		req := remoting.NewRequest(remoting.ReqSetMessageRequestMode, nil)
		req.Body = body
		_, err = c.ask(ctx, w.At.Addr, req)
		return err
	},
}

// PlanMode plans to let a group pull or pop the messages of a topic on the target's
// masters. Clients ask for it when they balance.
func (c *Client) PlanMode(ctx context.Context, t Target, topic, group string, to ModeState) (Plan, error) {
	if err := message.ValidateTopic(topic); err != nil {
		return nil, err
	}
	if err := message.ValidateGroup(group); err != nil {
		return nil, err
	}
	if to.Mode != ModePull && to.Mode != ModePop || to.Share < 0 {
		return nil, invalidf("cannot use consume mode %q with share %d: PULL or POP, and 0 or more", to.Mode, to.Share)
	}
	return modeCells.plan(ctx, c, onMasters(t), group, fmt.Sprintf("set consume mode of group %s for topic %s", group, topic), wanted[ModeState]{
		parts: []string{topic + "@" + group},
		make:  func(Broker, string, *ModeState) (*ModeState, error) { return &to, nil },
	})
}
