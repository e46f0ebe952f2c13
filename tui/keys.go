package tui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	switch {
	case m.typing != 0:
		return m.typeKey(k)
	case m.help:
		m.help = false
		return nil
	case m.menu != nil:
		return m.menuKey(k)
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
	case "a":
		m.openMenu()
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
	case "t":
		m.nextTheme()
	case "m":
		m.mouse = !m.mouse
		m.note = map[bool]string{true: "mouse on", false: "mouse off"}[m.mouse]
	case "w":
		m.save()
	case "space":
		m.mark()
	default:
		return m.moveOrOpen(k)
	}
	return nil
}

// moveOrOpen moves the cursor, opens a page or sorts.
func (m *Model) moveOrOpen(k string) tea.Cmd {
	page := max(1, m.room()-1)
	if step, ok := map[string]int{"down": 1, "j": 1, "up": -1, "k": -1, "pgdown": page, "pgup": -page, "g": -1 << 30, "home": -1 << 30, "G": 1 << 30, "end": 1 << 30}[k]; ok {
		switch {
		case m.now == nil || m.view == overview:
		case m.view == messageView:
			m.cursor[m.view] = max(0, min(m.cursor[m.view]+step, 1<<20)) // drawing bounds it by the text
		default:
			last := len(m.grid().rows) - 1
			m.cursor[m.view] = max(0, min(last, min(m.cursor[m.view], last)+step))
		}
		return nil
	}
	if step, ok := map[string]int64{"<": -1, "left": -1, ">": 1, "right": 1}[k]; ok && m.view == messageView && m.message != nil {
		ref := m.message.Ref
		ref.Offset = max(0, ref.Offset+step)
		return m.look(ref)
	}
	if len(k) == 1 && k[0] >= '1' && int(k[0]-'1') < len(pages) {
		return m.open(view(k[0] - '1'))
	}
	if len(k) == 1 && k[0] >= 'A' && k[0] <= 'Z' && m.now != nil && m.view != overview && m.view != messageView {
		m.sortBy(k[0])
	}
	return nil
}

// open opens a page. What it needs beside the rest is asked for once its screen is there:
// pages that are gone through quickly cost the brokers nothing.
func (m *Model) open(v view) tea.Cmd {
	if v == queuesView && m.view == groupsView {
		if name := m.under(); name != "" {
			m.group = name
		}
	}
	if v != m.view {
		m.filter = ""
	}
	m.view = v
	if v == overview || v == messageView || m.paused {
		return nil
	}
	m.opened++
	n := m.opened
	return tea.Tick(m.settle, func(time.Time) tea.Msg { return openedMsg{n} })
}

// ask asks for what the page that was opened last needs.
func (m *Model) ask(msg openedMsg) tea.Cmd {
	switch {
	case msg.n != m.opened || m.paused:
		return nil
	case m.reading:
		m.again = true
		return nil
	}
	return m.read()
}

func (m *Model) sortBy(letter byte) {
	if letter == 0 {
		return
	}
	for _, c := range m.grid().columns {
		if c.sort != letter {
			continue
		}
		o := order{letter: letter, down: c.right}
		if was := m.orders[m.view]; was.letter == letter {
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
	case len(m.marks[m.view]) > 0:
		m.marks[m.view] = nil
	case m.view == messageView && m.group != "":
		m.view = queuesView
	case m.view == queuesView:
		m.view = groupsView
	default:
		m.view = overview
	}
}

// under is the name of the row under the cursor.
func (m *Model) under() string {
	if m.now == nil || m.view == overview || m.view == messageView {
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
		m.cursor[queuesView] = 0
		return m.open(queuesView)
	case m.view == queuesView:
		q := m.queueOf(name)
		if q == nil || !q.End.OK || q.End.V == 0 {
			m.note = "the queue has no message"
			return nil
		}
		at := q.End.V - 1 // the last one, where all are read
		if q.Committed.OK && q.Committed.V < q.End.V {
			at = q.Committed.V
		}
		return m.look(MessageRef{Topic: q.Topic, Broker: q.Broker, Queue: q.ID, Offset: int64(at)})
	}
	m.note = m.adminLine()
	return nil
}

// look reads a message and opens its page.
func (m *Model) look(ref MessageRef) tea.Cmd {
	m.view, m.filter = messageView, ""
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, readTimeout)
		defer cancel()
		msg, err := m.o.Source.Message(ctx, ref)
		return messageMsg{msg, err}
	}
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

func (m *Model) nextTheme() {
	if !m.o.Colour {
		m.note = "there are no colours here (NO_COLOR, --color or TERM)"
		return
	}
	m.screen.theme = themes[(slices.Index(themes, m.screen.theme)+1)%len(themes)]
	m.note = "theme " + m.screen.theme.Name
}

// adminLine is the command that says more about what is meant: the first action of the
// page, which reads.
func (m *Model) adminLine() string {
	names := m.rowsMeant()
	for i := range actionsOf[m.view] {
		if a := &actionsOf[m.view][i]; a.reads && len(names) > 0 {
			if args := a.args(m, names[0]); args != nil {
				return m.line(args)
			}
		}
	}
	return ""
}

// quoted is a name as a shell takes it.
func quoted(name string) string {
	plain := func(r rune) bool {
		return !strings.ContainsRune("_-.:=@+,/", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if name != "" && !strings.ContainsFunc(name, plain) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// typeKey takes a key of a line that is typed.
func (m *Model) typeKey(k string) tea.Cmd {
	switch k {
	case "esc":
		m.typing = 0
	case "enter":
		kind, text := m.typing, strings.TrimSpace(m.typed)
		m.typing = 0
		if kind == '/' {
			m.filter = text
			m.cursor[m.view] = 0
			return nil
		}
		return m.command(text)
	default:
		m.typed = edit(m.typed, k)
	}
	return nil
}

// edit is a line after a key.
func edit(line, k string) string {
	switch k {
	case "backspace":
		if r := []rune(line); len(r) > 0 {
			return string(r[:len(r)-1])
		}
	case "ctrl+u":
		return ""
	case "space":
		return line + " "
	default:
		if r := []rune(k); len(r) == 1 {
			return line + k
		}
	}
	return line
}

// command does what was typed behind a colon.
func (m *Model) command(text string) tea.Cmd {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	word, args := words[0], words[1:]
	switch {
	case word == "q" || word == "quit":
		return tea.Quit
	case word == "save":
		m.save()
	case word == "pause":
		m.paused = !m.paused
	case word == "m" && len(args) > 0:
		return m.commandMessage(args)
	case word == "every" && len(args) == 1:
		d, err := time.ParseDuration(args[0])
		if err != nil || d < MinInterval || d > MaxInterval {
			m.note = fmt.Sprintf("the interval goes from %s to %s", MinInterval, MaxInterval)
			return nil
		}
		m.every(d)
	case word == "theme" && len(args) == 1:
		t := themeNamed(args[0])
		if t == nil || !m.o.Colour {
			m.note = "themes are " + strings.Join(ThemeNames(), ", ")
			return nil
		}
		m.screen.theme = t
	case word == "sort" && len(args) == 1 && len(args[0]) == 1 && m.view != overview && m.view != messageView && m.now != nil:
		m.sortBy(strings.ToUpper(args[0])[0])
	default:
		if v, ok := viewNamed(word); ok {
			if v == queuesView && len(args) == 1 {
				m.group = args[0]
			}
			return m.open(v)
		}
		m.note = fmt.Sprintf("no page is called %q; there are %s", word, strings.Join(pages, ", "))
	}
	return nil
}

// commandMessage opens a message by its id, or by topic and place.
func (m *Model) commandMessage(args []string) tea.Cmd {
	ref := MessageRef{ID: args[len(args)-1]}
	if len(args) > 1 {
		ref.Topic = args[0]
	}
	if parts := strings.Split(ref.ID, ":"); len(parts) == 3 {
		q, err := strconv.ParseInt(parts[1], 10, 32)
		off, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err != nil || err2 != nil || ref.Topic == "" {
			m.note = "a message is :m ID, or :m TOPIC BROKER:QUEUE:OFFSET"
			return nil
		}
		ref = MessageRef{Topic: ref.Topic, Broker: parts[0], Queue: int32(q), Offset: off}
	}
	return m.look(ref)
}
