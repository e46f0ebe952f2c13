package tui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mqx/internal/render"
)

// alarm is something that somebody should look at.
type alarm struct {
	tone render.Tone
	text string
}

// alarms are what is wrong with a cluster, the worst first.
func alarms(r *Rated, h *History, now time.Time) []alarm {
	var out []alarm
	for i := range r.Brokers {
		b := &r.Brokers[i]
		switch {
		case b.Err != "":
			since := ""
			if at, ok := h.seen[b.Key()]; ok {
				since = " for " + span(now.Sub(at))
			}
			out = append(out, alarm{render.Bad, fmt.Sprintf("broker %s does not answer%s", b.Name, since)})
		case b.Disk.OK && b.Disk.V >= 0.75:
			out = append(out, alarm{watermark(b.Disk), fmt.Sprintf("disk of broker %s is %s full: from 75%% on old files go, from 90%% on messages are refused", b.Name, percent(b.Disk))})
		}
		if b.LockHeld.OK && b.LockHeld.V >= 500 {
			out = append(out, alarm{render.Warn, fmt.Sprintf("an append at broker %s has held the log for %s", b.Name, millis(b.LockHeld))})
		}
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		growth := r.GroupLagging[g.Name]
		switch {
		case g.Lag.OK && g.Lag.V > 0 && !g.Online:
			out = append(out, alarm{render.Warn, fmt.Sprintf("group %s is %s behind, and nobody consumes", g.Name, count(g.Lag))})
		case growth.OK && growth.V > 0 && g.Lag.V > 1000:
			out = append(out, alarm{render.Warn, fmt.Sprintf("group %s is %s behind and falls back by %s/s", g.Name, count(g.Lag), perSecond(growth))})
		}
		if g.Lost > 0 {
			out = append(out, alarm{render.Bad, fmt.Sprintf("%s of group %s were deleted before it had read them", count(Known(g.Lost)), g.Name)})
		}
	}
	slices.SortStableFunc(out, func(a, b alarm) int { return cmp.Compare(rank(a.tone), rank(b.tone)) })
	return out
}

func rank(t render.Tone) int {
	if t == render.Bad {
		return 0
	}
	return 1
}

// overviewLines is the first page: the cluster as charts, its alarms, and the groups
// that are furthest behind.
func (s *screen) overviewLines(r *Rated, h *History, now time.Time, width, height int) []string {
	var out []string
	third := max(12, (width-4)/3)
	tall := 3
	if height >= 24 {
		tall = 5
	}
	titles := []string{
		"in " + perSecond(r.In) + "/s", "out " + perSecond(r.Out) + "/s", "lag " + count(r.Lag),
	}
	line := ""
	for i, t := range titles {
		line += s.bold(cut(t, third, false))
		if i < 2 {
			line += "  "
		}
	}
	out = append(out, line)
	charts := [][]string{chart(h.of("in"), third, tall), chart(h.of("out"), third, tall), chart(h.of("lag"), third, tall)}
	tones := []render.Tone{render.Good, render.Accent, render.Warn}
	for y := range tall {
		line := ""
		for i, c := range charts {
			line += s.paint(c[y], tones[i])
			if i < 2 {
				line += "  "
			}
		}
		out = append(out, line)
	}
	list := alarms(r, h, now)
	out = append(out, "", s.bold(fmt.Sprintf("ALARMS  %d", len(list))))
	room := max(2, (height-len(out))/2-1)
	for i, a := range list {
		if i == room-1 && len(list) > room {
			out = append(out, s.paint(fmt.Sprintf("  and %d more", len(list)-i), render.Dim))
			break
		}
		out = append(out, s.paint(cut("! "+a.text, width, false), a.tone))
	}
	if len(list) == 0 {
		out = append(out, s.paint("  none", render.Good))
	}
	g := groupsGrid(r, h)
	g.arrange("", order{2, true})
	out = append(out, "")
	return append(out, s.gridLines(g, nil, -1, width, height-len(out))...)
}
