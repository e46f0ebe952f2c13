package tui

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"mqx/internal/render"
	"mqx/internal/words"
)

// Options of a Model.
type Options struct {
	Source   Source
	Interval time.Duration
	// FixedInterval: the interval was given, a layout does not change it.
	FixedInterval bool
	// Rounds is after how many refreshes it ends; 0: never.
	Rounds int
	// First is a snapshot that has been read already; nil: none has.
	First  *Snapshot
	Colour bool
	Mouse  bool
	Now    func() time.Time
	// Target is what the lines for mqx admin have to name the cluster, as in " -n 10.0.0.1:9876".
	Target string
	// ReadOnly is why nothing may be changed; empty: it may.
	ReadOnly string
	// Command is a command of mqx with these arguments for the same cluster, which runs on
	// the terminal; nil where there is none to run it against.
	Command func(args []string) *exec.Cmd
	// Layout is how the screen is at the start; Save keeps one, nil where there is no place.
	Layout Layout
	Save   func(Layout) error
}

// Bounds of the interval.
const (
	MinInterval = 500 * time.Millisecond
	MaxInterval = 5 * time.Minute
)

// readTimeout bounds a refresh whose brokers all hang.
const readTimeout = 20 * time.Second

// settle is how long a page is open before what it needs is asked for: the answers of many
// brokers take the processor that draws it.
const settle = 30 * time.Millisecond

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
	again   bool // something else is wanted than what is being read
	opened  int  // pages that were opened
	settle  time.Duration
	rounds  int

	view    view
	group   string // of queuesView
	message *Message
	msgErr  error // why there is no message
	cursor  map[view]int
	orders  map[view]order
	marks   map[view]map[string]bool
	filter  string
	typing  byte // '/' or ':' while a line is typed, else 0
	typed   string
	menu    *menu
	paused  bool
	mouse   bool
	help    bool
	note    string

	drawn tableCache
}

// tableCache is the last table, for as long as it holds.
type tableCache struct {
	of   *Rated
	view view
	key  string
	sec  int64
	grid *grid
}

// NewModel makes the program. ctx ends what it reads.
func NewModel(ctx context.Context, o Options) *Model {
	m := &Model{
		o: o, ctx: ctx, screen: screen{mono()}, width: 80, height: 24, history: NewHistory(), mouse: o.Mouse, settle: settle,
		cursor: map[view]int{}, orders: map[view]order{}, marks: map[view]map[string]bool{},
	}
	if o.Colour {
		m.screen.theme = themes[0]
	}
	for v, ord := range firstOrder {
		m.orders[v] = ord
	}
	m.take(&o.Layout)
	if o.First != nil {
		m.now = m.history.Add(o.First)
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
	messageMsg struct {
		m   *Message
		err error
	}
	tickMsg  struct{}
	clockMsg struct{}
	// openedMsg: a page has been open for a moment; n tells which it was.
	openedMsg struct{ n int }
)

// Init asks for the first snapshot.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.read(), m.clock()) }

// clock makes ages move while nothing else comes.
func (m *Model) clock() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return clockMsg{} })
}

// want is what the page needs.
func (m *Model) want() Want {
	w := Want{Clients: m.view == clientsView, Brokers: m.view == brokersView}
	if m.view == queuesView {
		w.Group = m.group
	}
	if m.now == nil {
		return w
	}
	switch m.view {
	case groupsView:
		w.Groups = m.seen()
	case topicsView:
		w.Topics = m.seen()
	case overview:
		f := m.frame()
		g := f.groups()
		g.arrange("", firstOrder[groupsView])
		for i := range min(len(g.rows), m.height) {
			w.Groups = append(w.Groups, g.rows[i].name)
		}
	default:
	}
	return w
}

// seen are the names of the rows on the screen.
func (m *Model) seen() (out []string) {
	g := m.grid()
	first := g.first(m.at(g), m.room())
	for i := first; i < len(g.rows) && i < first+m.room(); i++ {
		out = append(out, g.rows[i].name)
	}
	return out
}

// read asks for a snapshot, one at a time.
func (m *Model) read() tea.Cmd {
	if m.reading {
		return nil
	}
	m.reading = true
	want := m.want()
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, readTimeout)
		defer cancel()
		s, err := m.o.Source.Read(ctx, want)
		return snapshotMsg{s, err}
	}
}

func (m *Model) later() tea.Cmd {
	wait := m.o.Interval
	if m.now != nil { // the time that reading took is part of the interval
		wait = max(wait/4, wait-m.now.Took)
	}
	return tea.Tick(wait, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case snapshotMsg:
		return m, m.took(msg)
	case messageMsg:
		m.message, m.msgErr = msg.m, msg.err
		m.cursor[messageView] = 0
	case actedMsg:
		if msg.err != nil {
			m.note = "it ended with: " + msg.err.Error()
		}
		return m, m.read()
	case tickMsg:
		if m.paused {
			return m, m.later()
		}
		return m, m.read()
	case openedMsg:
		return m, m.ask(msg)
	case clockMsg:
		return m, m.clock()
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case tea.MouseClickMsg:
		if msg.Button == tea.MouseLeft {
			return m, m.click(msg.X, msg.Y)
		}
	case tea.MouseWheelMsg:
		return m, m.moveOrOpen(map[tea.MouseButton]string{tea.MouseWheelUp: "up", tea.MouseWheelDown: "down"}[msg.Button])
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
	if m.again && !m.paused { // a page was opened while another was read
		m.again = false
		return m.read()
	}
	return m.later()
}

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(m.Screen())
	v.AltScreen = true
	v.WindowTitle = "mqx top"
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
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
		if lipgloss.Width(l) > m.width { // a screen that is too narrow for what has to stay
			l = lipgloss.NewStyle().MaxWidth(m.width).Render(l)
		}
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// room is the height that a table has, with its titles.
func (m *Model) room() int { return m.height - headLines - 1 }

func (m *Model) lines() []string {
	if m.help {
		lines := []string{m.screen.bold("Keys"), ""}
		for _, l := range helpLines {
			lines = append(lines, cut(l, m.width, false))
		}
		return lines
	}
	if m.menu != nil {
		return m.menuLines(m.width)
	}
	if m.now == nil {
		text := "asking the name servers …"
		if m.err != nil {
			text = "nothing is known: " + m.err.Error()
		}
		return []string{m.screen.bold("mqx top"), "", cut(text, m.width, false)}
	}
	age := m.o.Now().Sub(m.now.At)
	lines := []string{
		m.screen.head(m.now, m.o.Interval, age, m.paused, m.o.ReadOnly != "", m.width), m.screen.tabs(m.view, m.group, m.width), "",
	}
	switch m.view {
	case overview:
		return append(lines, m.screen.overviewLines(m.frame(), m.width, m.room())...)
	case messageView:
		text := m.screen.messageLines(m.message, m.msgErr, m.o.Now(), m.width)
		m.cursor[messageView] = max(0, min(m.cursor[messageView], len(text)-m.room()))
		return append(lines, text[m.cursor[messageView]:]...)
	default:
	}
	g := m.grid()
	return append(lines, m.screen.gridLines(g, m.history, m.marks[m.view], m.at(g), m.width, m.room())...)
}

func (m *Model) frame() *frame {
	return &frame{r: m.now, h: m.history, now: m.o.Now(), every: m.o.Interval, group: m.group}
}

// grid is the view as a table, filtered and sorted. It is made once for a snapshot, a
// page and a second: ages are told in seconds.
func (m *Model) grid() *grid {
	key := fmt.Sprint(m.group, "\x00", m.filter, "\x00", m.orders[m.view], m.o.Interval)
	now := m.o.Now()
	if c := &m.drawn; c.grid != nil && c.of == m.now && c.view == m.view && c.key == key && c.sec == now.Unix() {
		return c.grid
	}
	g := m.frame().table(m.view)
	g.arrange(m.filter, m.orders[m.view])
	m.drawn = tableCache{m.now, m.view, key, now.Unix(), g}
	return g
}

// at is the row of the cursor; -1 in an empty table.
func (m *Model) at(g *grid) int { return min(m.cursor[m.view], len(g.rows)-1) }

// queueOf is the queue of a row of queuesView.
func (m *Model) queueOf(key string) *Queue {
	g := m.now.group(m.group)
	if g == nil {
		return nil
	}
	if i := slices.IndexFunc(g.Queues, func(q Queue) bool { return q.Key() == key }); i >= 0 {
		return &g.Queues[i]
	}
	return nil
}

// foot is the last line: what is typed, what is to be said, or what went wrong.
func (m *Model) foot() string {
	switch {
	case m.typing != 0:
		return cut(string(m.typing)+m.typed+"_", m.width, false)
	case m.note != "":
		return m.screen.paint(cut(m.note, m.width, false), render.Accent)
	case m.now == nil:
		return m.screen.paint("q end", render.Dim)
	}
	// A list that is not whole says so, whatever else is to be said.
	front := m.narrowed()
	trouble := ""
	switch {
	case m.err != nil:
		trouble = "cannot refresh: " + m.err.Error()
	case len(m.now.Errors) > 0:
		trouble = m.now.Errors[0].Who + ": " + m.now.Errors[0].Why
		if n := len(m.now.Errors) - 1; n > 0 {
			trouble += fmt.Sprintf(" and %d more", n)
		}
	}
	if trouble == "" {
		return m.screen.paint(cut(front+m.costs(), m.width, false), render.Dim)
	}
	left := strings.TrimRight(cut(front+trouble, m.width, false), " ")
	if rest := m.width - textWidth(left) - 3; rest > 10 {
		return m.screen.paint(left, render.Bad) + "   " + m.screen.paint(cut(m.spent(), rest, false), render.Dim)
	}
	return m.screen.paint(left, render.Bad)
}

// narrowed says which rows are marked and which are seen.
func (m *Model) narrowed() string {
	text := ""
	if m.filter != "" {
		text = "filter: " + m.filter + " (Esc takes it away)   "
	}
	if n := len(m.marks[m.view]); n > 0 {
		text += words.Count(n, "row") + " marked   "
	}
	return text
}

// costs says the keys and what the last refresh has cost the brokers.
func (m *Model) costs() string { return "? keys  a act  / filter  q end   " + m.spent() }

// spent is what the last refresh has cost the brokers.
func (m *Model) spent() string {
	text := count(Known(m.now.Requests)) + " requests"
	if m.now.Bound > 0 {
		text += " of at most " + count(Known(m.now.Bound))
	}
	text += " in " + render.FormatDuration(m.now.Took)
	if (m.view == clientsView || m.view == brokersView) && !m.now.Whole && m.now.ClientsOf > 0 {
		text += fmt.Sprintf("   members of %d of %d groups so far", m.now.ClientsOf, len(m.now.Groups))
	}
	return text
}
