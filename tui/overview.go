package tui

import (
	"cmp"
	"fmt"
	"strings"

	"mqx/internal/render"
	"mqx/internal/sorted"
)

// alarm is something that somebody should look at.
type alarm struct {
	tone render.Tone
	text string
}

// alarms are what is wrong with a cluster, the worst first.
func (f *frame) alarms() []alarm {
	var out []alarm
	r := f.r
	for i := range r.Brokers {
		b := &r.Brokers[i]
		name := b.Name
		if b.ID != 0 {
			name += " (" + roleText(b) + ")"
		}
		switch {
		case b.Err != "":
			since := ""
			if !b.At.IsZero() {
				since = " for " + span(f.now.Sub(b.At))
			}
			out = append(out, alarm{render.Bad, fmt.Sprintf("broker %s does not answer%s", name, since)})
		case b.Disk.OK && b.Disk.V >= 0.75:
			tone, _ := watermark(b.Disk)
			out = append(out, alarm{tone, fmt.Sprintf("disk of broker %s is %s full: from 75%% on old files go at the hour of deleteWhen, from 85%% at once, from 90%% messages are refused", name, percent(b.Disk))})
		}
		if b.LockHeld.OK && b.LockHeld.V >= 500 {
			out = append(out, alarm{render.Warn, fmt.Sprintf("an append at broker %s has held the log for %s", name, millis(b.LockHeld))})
		}
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		growth := r.GroupLagging[g.Name]
		switch {
		case g.Lag.OK && g.Lag.V > 0 && g.Looked() && !g.Online:
			out = append(out, alarm{render.Warn, fmt.Sprintf("group %s is %s behind, and nobody consumes", g.Name, count(g.Lag))})
		case growth.OK && growth.V > 0 && g.Lag.V > 1000:
			out = append(out, alarm{render.Warn, fmt.Sprintf("group %s is %s behind and falls back by %s/s", g.Name, count(g.Lag), perSecond(growth))})
		}
		if g.Expires == "yes" && g.Lag.V > 0 {
			out = append(out, alarm{render.Bad, fmt.Sprintf("messages that group %s has not read are going to be deleted: the oldest is %s old", g.Name, span(g.Age))})
		}
		if g.Lost > 0 {
			out = append(out, alarm{render.Bad, fmt.Sprintf("%s of group %s were deleted before it had read them", count(Known(g.Lost)), g.Name)})
		}
	}
	sorted.Stably(out, func(a, b alarm) int { return cmp.Compare(rank(a.tone), rank(b.tone)) })
	return out
}

func rank(t render.Tone) int {
	if t == render.Bad {
		return 0
	}
	return 1
}

// overviewLines is the first page: the cluster as charts, its brokers and alarms, and the
// groups that are furthest behind.
func (s *screen) overviewLines(f *frame, width, height int) []string {
	out := s.charts(f, width, height)
	out = append(out, "", s.brokerStrip(f, width))
	list := f.alarms()
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
	g := f.groups()
	g.arrange("", firstOrder[groupsView])
	out = append(out, "")
	return append(out, s.gridLines(g, f.h, nil, -1, width, height-len(out))...)
}

// charts are the rates and the lag of the cluster, side by side.
func (s *screen) charts(f *frame, width, height int) []string {
	third := max(12, (width-4)/3)
	tall := 3
	if height >= 24 {
		tall = 5
	}
	r, h := f.r, f.h
	titles := []string{"in " + perSecond(r.In) + "/s", "out " + perSecond(r.Out) + "/s", "lag " + count(r.Lag)}
	for i, t := range titles {
		titles[i] = s.bold(cut(t, third, false))
	}
	out := []string{strings.Join(titles, "  ")}
	charts := [][]string{chart(h.of("in"), third, tall), chart(h.of("out"), third, tall), chart(h.of("lag"), third, tall)}
	tones := []render.Tone{render.Good, render.Accent, render.Warn}
	for y := range tall {
		parts := make([]string, len(charts))
		for i, c := range charts {
			parts[i] = s.paint(c[y], tones[i])
		}
		out = append(out, strings.Join(parts, "  "))
	}
	return out
}

// brokerStrip is one line with what each broker takes in and how full its disk is.
func (s *screen) brokerStrip(f *frame, width int) string {
	line, used := s.bold("BROKERS"), len("BROKERS")
	for i := range f.r.Brokers {
		b := &f.r.Brokers[i]
		if b.ID != 0 {
			continue
		}
		in, disk := f.r.BrokerIn[b.Key()], diskCell(b.Disk)
		text, tone := fmt.Sprintf("%s %s/s disk %s", b.Name, perSecond(in), disk.text), disk.tone
		if b.Err != "" {
			text, tone = b.Name+" "+orText(f.old(true, b.At), "silent"), render.Bad
		}
		if used += textWidth(text) + 2; used > width-6 {
			return line + "  …"
		}
		line += "  " + s.paint(text, tone)
	}
	return line
}
