package tui

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"mqx/internal/render"
	"mqx/internal/words"
)

// messageLines is a message as text: its place and head, its properties, its body. Only
// the body may be longer than the screen; top is the first line of all that is shown.
func (s *screen) messageLines(m *Message, err error, now time.Time, width int) []string {
	switch {
	case err != nil:
		return []string{s.paint(cut("cannot read the message: "+err.Error(), width, false), render.Bad)}
	case m == nil:
		return []string{s.paint("no message is opened: Enter on a queue opens the first that is not read, :m ID or :m TOPIC BROKER:QUEUE:OFFSET another", render.Dim)}
	}
	line := func(name, value string) string {
		return s.paint(cut(name, 14, false), render.Dim) + cut(printable(value), max(1, width-14), false)
	}
	when := func(at time.Time) string {
		if at.IsZero() {
			return unknown
		}
		return at.UTC().Format("2006-01-02 15:04:05.000") + "Z, " + render.FormatDuration(max(0, now.Sub(at))) + " ago"
	}
	out := []string{
		line("topic", m.Ref.Topic), line("place", fmt.Sprintf("%s:%d:%d", m.Ref.Broker, m.Ref.Queue, m.Ref.Offset)), line("id", m.ID), line("offset id", m.OffsetID),
		line("tag", orDash(m.Tags)), line("keys", orDash(m.Keys)), line("born", when(m.Born)+"  "+m.BornHost), line("stored", when(m.Stored)+"  "+m.StoreHost),
		line("size", fmt.Sprintf("%s stored, body %s", size(Known(m.Size)), size(Known(m.BodySize)))), line("retried", words.Count(m.Reconsumed, "time")),
	}
	if m.Others > 0 {
		out = append(out, s.paint(line("", fmt.Sprintf("%d more records have this id", m.Others)), render.Warn))
	}
	out = append(out, "", s.bold(fmt.Sprintf("PROPERTIES  %d", len(m.Properties))))
	for _, p := range m.Properties {
		out = append(out, "  "+cut(printable(p[0]+" = "+p[1]), max(1, width-2), false))
	}
	out = append(out, "", s.bold("BODY"))
	for _, l := range bodyLines(m.Body, max(1, width-2)) {
		out = append(out, "  "+l)
	}
	return out
}

// bodyLines is a body as text, or in hexadecimal where it is none, broken at the width.
func bodyLines(body []byte, width int) []string {
	var out []string
	if !utf8.Valid(body) {
		for l := range strings.Lines(hex.Dump(body)) {
			out = append(out, cut(strings.TrimRight(l, "\n"), width, false))
		}
		return out
	}
	for l := range strings.SplitSeq(strings.TrimRight(string(body), "\n"), "\n") {
		out = append(out, wrap(printable(l), width)...)
	}
	return out
}

// printable is a text without what would steer a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '·'
		}
		return r
	}, s)
}
