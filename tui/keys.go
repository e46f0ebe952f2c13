package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// key does what a key says.
func (m *Model) key(k string) tea.Cmd {
	if k == "ctrl+c" {
		return tea.Quit
	}
	m.note = ""
	if m.typing != 0 {
		return m.typeKey(k)
	}
	if m.help {
		m.help = false
		return nil
	}
	switch k {
	case "q":
		return tea.Quit
	case "?":
		m.help = true
	case "/", ":":
		m.typing, m.typed = k[0], ""
	case "esc":
		m.escape()
	case "enter":
		return m.enter()
	case "p":
		m.paused = !m.paused
	case "r":
		return m.read()
	case "+", "=":
		m.every(m.o.Interval / 2)
	case "-":
		m.every(m.o.Interval * 2)
	case "c":
		m.note = m.adminLine()
	case "space":
		m.mark()
	default:
		return m.moveOrOpen(k)
	}
	return nil
}

// moveOrOpen moves the cursor, opens a page or sorts.
func (m *Model) moveOrOpen(k string) tea.Cmd {
	page := max(1, m.height-6)
	if step, ok := map[string]int{"down": 1, "j": 1, "up": -1, "k": -1, "pgdown": page, "pgup": -page, "g": -1 << 30, "home": -1 << 30, "G": 1 << 30, "end": 1 << 30}[k]; ok {
		if m.now != nil && m.view != overview {
			last := len(m.grid().rows) - 1
			m.cursor[m.view] = max(0, min(last, min(m.cursor[m.view], last)+step))
		}
		return nil
	}
	if len(k) == 1 && k[0] >= '1' && int(k[0]-'1') < len(pages) {
		return m.open(view(k[0] - '1'))
	}
	if len(k) == 1 && k[0] >= 'A' && k[0] <= 'Z' && m.now != nil && m.view != overview {
		m.sortBy(k[0])
	}
	return nil
}

// open opens a page. What it needs beside the rest is asked for at once.
func (m *Model) open(v view) tea.Cmd {
	if v != m.view {
		m.filter = ""
	}
	m.view = v
	if v == clientsView || v == queuesView {
		return m.read()
	}
	return nil
}

func (m *Model) sortBy(letter byte) {
	for i, c := range m.grid().columns {
		if c.sort != letter {
			continue
		}
		o := order{column: i, down: c.right}
		if was := m.orders[m.view]; was.column == i {
			o.down = !was.down
		}
		m.orders[m.view] = o
		m.note = "sorted by " + strings.ToLower(c.title)
		return
	}
}

func (m *Model) escape() {
	switch {
	case m.filter != "":
		m.filter = ""
	case m.view == queuesView:
		m.view = groupsView
	default:
		m.view = overview
	}
}

// under is the name of the row under the cursor.
func (m *Model) under() string {
	if m.now == nil || m.view == overview {
		return ""
	}
	g := m.grid()
	if i := m.at(g); i >= 0 {
		return g.rows[i].name
	}
	return ""
}

func (m *Model) enter() tea.Cmd {
	name := m.under()
	switch {
	case name == "":
		return nil
	case m.view == groupsView:
		m.group = name
		m.cursor[queuesView] = 0
		return m.open(queuesView)
	}
	m.note = m.adminLine()
	return nil
}

func (m *Model) mark() {
	name := m.under()
	if name == "" {
		return
	}
	if m.marks[m.view] == nil {
		m.marks[m.view] = map[string]bool{}
	}
	if m.marks[m.view][name] {
		delete(m.marks[m.view], name)
	} else {
		m.marks[m.view][name] = true
	}
}

func (m *Model) every(d time.Duration) {
	m.o.Interval = min(max(d, MinInterval), MaxInterval)
}

// adminLine is the command that says more about what is under the cursor.
func (m *Model) adminLine() string {
	name := m.under()
	if m.view == queuesView {
		return "mqx admin lag get -g " + quoted(m.group) + m.o.Target
	}
	if name == "" {
		return ""
	}
	switch m.view {
	case brokersView:
		return "mqx admin broker status " + quoted(name) + m.o.Target
	case topicsView:
		return "mqx admin topic get " + quoted(name) + m.o.Target
	case clientsView:
		return "mqx admin client get " + quoted(name) + m.o.Target
	default:
		return "mqx admin group get " + quoted(name) + m.o.Target
	}
}

// quoted is a name as a shell takes it.
func quoted(name string) string {
	plain := func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if name != "" && !strings.ContainsFunc(name, plain) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// typeKey takes a key while a line is typed.
func (m *Model) typeKey(k string) tea.Cmd {
	switch k {
	case "esc":
		m.typing = 0
	case "enter":
		kind, text := m.typing, strings.TrimSpace(m.typed)
		m.typing = 0
		if kind == '/' {
			m.filter, m.cursor[m.view] = text, 0
			return nil
		}
		return m.command(text)
	case "backspace":
		if r := []rune(m.typed); len(r) > 0 {
			m.typed = string(r[:len(r)-1])
		}
	case "space":
		m.typed += " "
	default:
		if r := []rune(k); len(r) == 1 {
			m.typed += k
		}
	}
	return nil
}

// command does what was typed behind a colon.
func (m *Model) command(text string) tea.Cmd {
	if text == "q" || text == "quit" {
		return tea.Quit
	}
	if i := slices.IndexFunc(pages, func(p string) bool { return text != "" && strings.HasPrefix(p, text) }); i >= 0 {
		return m.open(view(i))
	}
	m.note = fmt.Sprintf("no page is called %q; there are %s", text, strings.Join(pages, ", "))
	return nil
}
