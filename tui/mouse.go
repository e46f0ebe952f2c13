package tui

import (
	tea "charm.land/bubbletea/v2"
)

// headLines stand above a table: the head, the pages, an empty line.
const headLines = 3

// click takes a click of the left button: on a page it opens it, on a title it sorts,
// on a row it moves the cursor there, and on the row under the cursor it is Enter.
func (m *Model) click(x, y int) tea.Cmd {
	if m.now == nil || m.help || m.menu != nil || m.typing != 0 {
		return nil
	}
	if y == 1 {
		if v, ok := tabAt(m.view, m.group, m.width, x); ok {
			return m.open(v)
		}
		return nil
	}
	if m.view == overview || m.view == messageView || y < headLines {
		return nil
	}
	g := m.grid()
	if y == headLines {
		at := gutter
		for i, w := range g.widths(m.width - gutter) {
			if w == 0 {
				continue
			}
			if at += w + 2; x < at {
				m.sortBy(g.columns[i].sort)
				return nil
			}
		}
		return nil
	}
	selected := m.at(g)
	i := g.first(selected, m.room()) + y - headLines - 1
	switch {
	case i >= len(g.rows):
		return nil
	case i == selected:
		return m.enter()
	}
	m.cursor[m.view] = i
	return nil
}
