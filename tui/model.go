package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"mqx/internal/render"
)

// Options of a Model.
type Options struct {
	Source   Source
	Interval time.Duration
	// Rounds is after how many refreshes it ends; 0: never.
	Rounds int
	Colour bool
	Now    func() time.Time
	// Target is what the lines for mqx admin have to name the cluster, as in " -n 10.0.0.1:9876".
	Target string
}

// Bounds of the interval.
const (
	MinInterval = 500 * time.Millisecond
	MaxInterval = 5 * time.Minute
)

// readTimeout bounds a refresh whose brokers all hang.
const readTimeout = 20 * time.Second

// Model is the program: keys and snapshots in, a screen out.
type Model struct {
	o       Options
	ctx     context.Context
	screen  screen
	width   int
	height  int
	history *History
	now     *Rated
	err     error // of the last refresh
	reading bool
	rounds  int

	view   view
	group  string // of queuesView
	cursor map[view]int
	orders map[view]order
	marks  map[view]map[string]bool
	filter string
	typing byte // '/' or ':' while a line is typed, else 0
	typed  string
	paused bool
	help   bool
	note   string
}

// NewModel makes the program. ctx ends what it reads.
func NewModel(ctx context.Context, o Options) *Model {
	m := &Model{
		o: o, ctx: ctx, screen: screen{o.Colour}, width: 80, height: 24, history: NewHistory(),
		cursor: map[view]int{}, orders: map[view]order{}, marks: map[view]map[string]bool{},
	}
	for v, ord := range firstOrder {
		m.orders[v] = ord
	}
	return m
}

// Err is why the last refresh failed.
func (m *Model) Err() error { return m.err }

type (
	snapshotMsg struct {
		s   *Snapshot
		err error
	}
	tickMsg  struct{}
	clockMsg struct{}
)

// Init asks for the first snapshot.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.read(), m.clock()) }

// clock makes ages move while nothing else comes.
func (m *Model) clock() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return clockMsg{} })
}

// read asks for a snapshot, one at a time.
func (m *Model) read() tea.Cmd {
	if m.reading {
		return nil
	}
	m.reading = true
	want := Want{Clients: m.view == clientsView}
	if m.view == queuesView {
		want.Group = m.group
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, readTimeout)
		defer cancel()
		s, err := m.o.Source.Read(ctx, want)
		return snapshotMsg{s, err}
	}
}

func (m *Model) later() tea.Cmd {
	return tea.Tick(m.o.Interval, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case snapshotMsg:
		return m, m.took(msg)
	case tickMsg:
		if m.paused {
			return m, m.later()
		}
		return m, m.read()
	case clockMsg:
		return m, m.clock()
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

// took takes a snapshot, and ends the program after its last round.
func (m *Model) took(msg snapshotMsg) tea.Cmd {
	m.reading = false
	if m.err = msg.err; m.err == nil {
		m.now = m.history.Add(msg.s)
	}
	m.rounds++
	if m.o.Rounds > 0 && m.rounds >= m.o.Rounds {
		return tea.Quit
	}
	return m.later()
}

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(m.Screen())
	v.AltScreen = true
	v.WindowTitle = "mqx top"
	return v
}

// Screen is the screen as text, of the size that the terminal has.
func (m *Model) Screen() string {
	lines := m.lines()
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, m.height-1)], m.foot())
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

func (m *Model) lines() []string {
	if m.help {
		return append([]string{m.screen.bold("Keys"), ""}, helpLines...)
	}
	if m.now == nil {
		text := "asking the name servers …"
		if m.err != nil {
			text = "nothing is known: " + m.err.Error()
		}
		return []string{m.screen.bold("mqx top"), "", cut(text, m.width, false)}
	}
	age := m.o.Now().Sub(m.now.At)
	lines := []string{m.screen.head(m.now, m.o.Interval, age, m.paused, m.width), m.screen.tabs(m.view, m.group, m.width), ""}
	room := m.height - len(lines) - 1
	if m.view == overview {
		return append(lines, m.screen.overviewLines(m.now, m.history, m.o.Now(), m.width, room)...)
	}
	g := m.grid()
	return append(lines, m.screen.gridLines(g, m.marks[m.view], m.at(g), m.width, room)...)
}

// grid is the view as a table, filtered and sorted.
func (m *Model) grid() *grid {
	g := gridOf(m.view, m.now, m.history, m.group, m.o.Now())
	g.arrange(m.filter, m.orders[m.view])
	return g
}

// at is the row of the cursor; -1 in an empty table.
func (m *Model) at(g *grid) int { return min(m.cursor[m.view], len(g.rows)-1) }

// foot is the last line: what is typed, what is to be said, or what went wrong.
func (m *Model) foot() string {
	switch {
	case m.typing != 0:
		return cut(string(m.typing)+m.typed+"_", m.width, false)
	case m.note != "":
		return m.screen.paint(cut(m.note, m.width, false), render.Accent)
	case m.err != nil && m.now != nil:
		return m.screen.paint(cut("cannot refresh: "+m.err.Error(), m.width, false), render.Bad)
	case m.now != nil && len(m.now.Errors) > 0:
		return m.screen.paint(cut(m.now.Errors[0].Who+": "+m.now.Errors[0].Why, m.width, false), render.Bad)
	case m.now == nil:
		return m.screen.paint("q end", render.Dim)
	}
	text := fmt.Sprintf("? keys  / filter  q end   %s requests in %s", count(Known(m.now.Requests)), render.FormatDuration(m.now.Took))
	if m.filter != "" {
		text = "filter: " + m.filter + " (Esc takes it away)   " + text
	}
	return m.screen.paint(cut(text, m.width, false), render.Dim)
}
