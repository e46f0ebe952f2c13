package tui

import (
	"strings"

	"mqx/internal/render"
	"mqx/internal/words"
)

func (f *frame) clients() *grid {
	g := &grid{empty: "no client is connected", columns: []column{
		{title: "CLIENT", sort: 'C'},
		{title: "STATE", sort: 'S'},
		{title: "LANGUAGE", sort: 'L', drop: 3},
		{title: "VERSION", sort: 'V', drop: 5},
		{title: "CONSUMES", sort: 'G', grows: true},
		{title: "PRODUCES", sort: 'P', drop: 2},
		{title: "ADDRESS", sort: 'A', drop: 4},
		{title: "HEARTBEAT", sort: 'H', right: true, drop: 6},
	}}
	if !f.r.Whole {
		g.empty = "the groups are being asked for their members"
	}
	for i := range f.r.Clients {
		c := &f.r.Clients[i]
		seen := text(unknown)
		if !c.Seen.IsZero() {
			seen = number(Num{float64(max(0, f.now.Sub(c.Seen))), true}, f.since(c.Seen))
		}
		g.rows = append(g.rows, row{name: c.ID, id: c.ID, cells: []cell{
			toned(text(c.ID), render.Accent), f.aged(connected(c), c.At), text(strings.ToLower(c.Language)), text(c.Version),
			text(orDash(strings.Join(c.Consumes, ", "))), text(orDash(strings.Join(c.Produces, ", "))), text(strings.Join(c.Addrs, " ")), seen,
		}})
	}
	return g
}

// connected is how many brokers a client is connected to, and whether more than one
// process goes by its id.
func connected(c *Client) cell {
	out := toned(number(Known(len(c.Brokers)), words.Count(len(c.Brokers), "broker")), render.Good)
	hosts := map[string]bool{}
	for _, a := range c.Addrs {
		host := a
		if i := strings.LastIndexByte(a, ':'); i > 0 {
			host = a[:i]
		}
		hosts[host] = true
	}
	if len(hosts) > 1 {
		out.text, out.tone = out.text+", "+words.Count(len(hosts), "host"), render.Warn
	}
	return out
}
