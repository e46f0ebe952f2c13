package tui

import (
	"fmt"
	"strings"
	"time"
)

// Layout is how somebody likes the screen: what w saves, and a start takes over.
type Layout struct {
	View     string            `json:"view,omitempty"`
	Theme    string            `json:"theme,omitempty"`
	Interval string            `json:"interval,omitempty"` // as 2s
	Mouse    bool              `json:"mouse,omitempty"`
	Sort     map[string]string `json:"sort,omitempty"` // letter by view, with - in front from the largest down
}

// Check reports the first thing in a layout that is none.
func (l *Layout) Check() error {
	if _, ok := viewNamed(l.View); l.View != "" && !ok {
		return fmt.Errorf("cannot use view %q: it is one of %s", l.View, strings.Join(pages, ", "))
	}
	if l.Theme != "" && themeNamed(l.Theme) == nil {
		return fmt.Errorf("cannot use theme %q: it is one of %s", l.Theme, strings.Join(ThemeNames(), ", "))
	}
	if l.Interval != "" {
		if d, err := time.ParseDuration(l.Interval); err != nil || d < MinInterval || d > MaxInterval {
			return fmt.Errorf("cannot use interval %q: it goes from %s to %s", l.Interval, MinInterval, MaxInterval)
		}
	}
	for name, by := range l.Sort {
		if _, ok := viewNamed(name); !ok || len(strings.TrimPrefix(by, "-")) != 1 {
			return fmt.Errorf("cannot sort %q by %q: it is a view and the letter of a column", name, by)
		}
	}
	return nil
}

func viewNamed(name string) (view, bool) {
	for i, p := range pages {
		if name != "" && strings.HasPrefix(p, name) {
			return view(i), true
		}
	}
	return 0, false
}

// take makes the screen as a layout says, which has been checked.
func (m *Model) take(l *Layout) {
	if v, ok := viewNamed(l.View); ok && v != messageView && v != queuesView {
		m.view = v
	}
	if t := themeNamed(l.Theme); t != nil && m.o.Colour {
		m.screen.theme = t
	}
	if d, err := time.ParseDuration(l.Interval); err == nil && !m.o.FixedInterval {
		m.every(d)
	}
	m.mouse = m.mouse || l.Mouse
	for name, by := range l.Sort {
		if v, ok := viewNamed(name); ok {
			letter, down := strings.CutPrefix(by, "-")
			m.orders[v] = order{letter[0], down}
		}
	}
}

// layout is how the screen is now.
func (m *Model) layout() Layout {
	l := Layout{View: m.view.String(), Theme: m.screen.theme.Name, Interval: m.o.Interval.String(), Mouse: m.mouse, Sort: map[string]string{}}
	if !m.o.Colour {
		l.Theme = m.o.Layout.Theme // it was not chosen
	}
	for v, o := range m.orders {
		if o == firstOrder[v] {
			continue
		}
		by := string(o.letter)
		if o.down {
			by = "-" + by
		}
		l.Sort[v.String()] = by
	}
	return l
}

// save keeps the layout.
func (m *Model) save() {
	if m.o.Save == nil {
		m.note = "the layout cannot be saved here"
		return
	}
	if err := m.o.Save(m.layout()); err != nil {
		m.note = err.Error()
		return
	}
	m.note = "layout saved"
}
