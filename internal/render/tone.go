package render

import (
	"image/color"

	"charm.land/lipgloss/v2"
)

// Tone is how a value is coloured on a terminal. It never carries meaning of its
// own: what it stresses is in the text as well.
type Tone int

// The tones, in the sixteen colours that every terminal has.
const (
	Plain Tone = iota
	Good
	Warn
	Bad
	Dim
	Accent // the name of a record
)

// Paint colours text, unless on is false.
func Paint(text string, t Tone, on bool) string {
	if !on || text == "" {
		return text
	}
	var c color.Color
	switch t {
	case Good:
		c = lipgloss.Green
	case Warn:
		c = lipgloss.Yellow
	case Bad:
		c = lipgloss.Red
	case Accent:
		c = lipgloss.Cyan
	case Dim:
		return lipgloss.NewStyle().Faint(true).Render(text)
	case Plain:
		return text
	default:
		return text
	}
	return lipgloss.NewStyle().Foreground(c).Render(text)
}

// Bold stresses text, unless on is false.
func Bold(text string, on bool) string {
	if !on || text == "" {
		return text
	}
	return lipgloss.NewStyle().Bold(true).Render(text)
}

// tone is the colour of one value: what nobody knows and ages recede, the name
// stands out, and a field may say more of its own values.
func (w *Writer) tone(i int, v any) Tone {
	f := w.schema.Fields[i]
	switch {
	case v == nil:
		return Dim
	case f.Tone != nil:
		return f.Tone(v)
	case f.Name == w.schema.Name:
		return Accent
	case f.Kind == Time:
		return Dim
	}
	return Plain
}

// WarnAbove and BadAbove are the tone of numbers that should not be larger than limit.
func WarnAbove(limit int64) func(v any) Tone { return above(limit, Warn) }

// BadAbove is WarnAbove for what must not be.
func BadAbove(limit int64) func(v any) Tone { return above(limit, Bad) }

func above(limit int64, t Tone) func(v any) Tone {
	return func(v any) Tone {
		if n, ok := v.(int64); ok && n > limit {
			return t
		}
		return Plain
	}
}

// ToneOf is the tone of some texts; any other text gets the tone rest.
func ToneOf(tones map[string]Tone, rest Tone) func(v any) Tone {
	return func(v any) Tone {
		s, ok := v.(string)
		if !ok {
			return Plain
		}
		if t, ok := tones[s]; ok {
			return t
		}
		return rest
	}
}
