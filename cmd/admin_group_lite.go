package cmd

import (
	"context"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/remoting"
)

var groupLiteSchema = render.Schema{Kind: "GroupLiteList", Name: "liteTopic", Fields: []render.Field{
	{Name: "group", Wide: true, Doc: "consumer group"},
	{Name: "topic", Wide: true, Doc: "parent topic"},
	{Name: "broker", Doc: "broker name"},
	{Name: "liteTopic", Doc: "lite topic; unknown for the line that sums a broker up"},
	{Name: "lag", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "messages behind"},
	{Name: "oldest", Kind: render.Time, Doc: "when the oldest message that it has not consumed was stored"},
	{Name: "maxOffset", Title: "END", Kind: render.Int, Doc: "offset the next message will get; unknown but for one lite topic"},
	{Name: "offset", Kind: render.Int, Doc: "committed offset of the group"},
}}

// liteRows is how far a group is behind in lite topics: one, or the sum and the worst.
func liteRows(ctx context.Context, client *admin.Client, group, parent, lite string, top int32) (answer, error) {
	found, errs, err := client.LiteGroups(ctx, parent, group, lite, top)
	ans := answer{errs: errs}
	for _, l := range found {
		i := &l.Info
		if o := i.LiteTopicOffsetWrapper; o != nil && lite != "" {
			ans.rows = append(ans.rows, []any{group, parent, l.Name, lite, o.BrokerOffset - o.ConsumerOffset, timeOrNil(i.EarliestUnconsumedTimestamp), o.BrokerOffset, o.ConsumerOffset})
			continue
		}
		ans.rows = append(ans.rows, []any{group, parent, l.Name, orUnknown(lite), i.TotalLagCount, timeOrNil(i.EarliestUnconsumedTimestamp), nil, nil})
		for _, t := range worstLites(i) {
			ans.rows = append(ans.rows, []any{group, parent, l.Name, t.LiteTopic, t.LagCount, timeOrNil(t.EarliestUnconsumedTimestamp), nil, nil})
		}
	}
	return ans, err
}

// worstLites are the lite topics that a broker names, by count first and then by time.
func worstLites(i *remoting.LiteGroupInfo) []remoting.LiteLag {
	seen := map[string]bool{}
	var out []remoting.LiteLag
	for _, list := range [][]remoting.LiteLag{i.LagCountTopK, i.LagTimestampTopK} {
		for _, t := range list {
			if !seen[t.LiteTopic] {
				seen[t.LiteTopic] = true
				out = append(out, t)
			}
		}
	}
	return out
}
