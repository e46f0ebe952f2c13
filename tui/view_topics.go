package tui

import "mqx/internal/render"

func (f *frame) topics() *grid {
	g := &grid{empty: "no topic", columns: []column{
		{title: "TOPIC", sort: 'T'},
		{title: "IN/s", sort: 'I', right: true},
		{title: "OUT/s", sort: 'O', right: true},
		{title: "HISTORY", drop: 5, grows: true, spark: true},
		{title: "STORED", sort: 'S', right: true, drop: 2},
		{title: "GROUPS", sort: 'G', right: true},
		{title: "QUEUES", sort: 'Q', right: true, drop: 3},
		{title: "BROKERS", sort: 'B', right: true, drop: 4},
		{title: "KIND", sort: 'K', drop: 6},
	}}
	for i := range f.r.Topics {
		t := &f.r.Topics[i]
		in, out := f.r.TopicIn[t.Name], f.r.TopicOut[t.Name]
		g.rows = append(g.rows, row{name: t.Name, id: t.Name, stale: t.Stale, old: f.old(t.Stale, t.EndAt), cells: []cell{
			toned(text(t.Name), render.Accent), number(in, perSecond(in)), number(out, perSecond(out)), spark("topic in " + t.Name),
			f.aged(number(t.Stored, count(t.Stored)), t.SizeAt), number(Known(t.Groups), itoa(int64(t.Groups))),
			number(Known(t.Queues), itoa(int64(t.Queues))), number(Known(t.Brokers), itoa(int64(t.Brokers))), text(t.Kind),
		}})
	}
	return g
}
