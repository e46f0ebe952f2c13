package tui

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"mqx/internal/render"
)

// action is what can be done with a row: a line of mqx admin, whose end may be edited.
type action struct {
	key   byte
	title string
	args  func(m *Model, name string) []string
	rest  string // what the line proposes behind that
	reads bool   // it changes nothing
}

// actionsOf are the actions of the pages.
var actionsOf = map[view][]action{
	brokersView: {
		{key: 's', title: "status in full", args: onName("broker", "status"), reads: true},
		{key: 'c', title: "set a key of its configuration", args: func(_ *Model, n string) []string { return []string{"config", "set", "-b", n} }, rest: "fileReservedTime=48"},
		{key: 'w', title: "take its write permission from the routes", args: onName("broker", "set"), rest: "--writable=false"},
		{key: 'W', title: "give its write permission back", args: onName("broker", "set"), rest: "--writable=true"},
		{key: 'x', title: "delete expired files now", args: onName("broker", "purge"), rest: "--expired"},
	},
	topicsView: {
		{key: 's', title: "show in full", args: onName("topic", "get"), reads: true},
		{key: 'p', title: "set permission", args: onName("topic", "set"), rest: "--perm r"},
		{key: 'q', title: "set number of queues", args: onName("topic", "set"), rest: "--queues 8"},
		{key: 'd', title: "delete", args: onName("topic", "rm")},
	},
	groupsView: {
		{key: 's', title: "show in full", args: onName("group", "get"), reads: true},
		{key: 'r', title: "reset offsets", args: func(_ *Model, n string) []string { return []string{"offset", "reset", "-g", n, "--all"} }, rest: "--to end"},
		{key: 'c', title: "stop it from consuming", args: onName("group", "set"), rest: "--consume=false"},
		{key: 'C', title: "let it consume again", args: onName("group", "set"), rest: "--consume=true"},
		{key: 'd', title: "delete", args: onName("group", "rm")},
	},
	queuesView: {
		{key: 'r', title: "reset the offset of this queue", args: func(m *Model, key string) []string {
			q := m.queueOf(key)
			if q == nil {
				return nil
			}
			return []string{"offset", "reset", "-g", m.group, "-t", q.Topic, "-b", q.Broker, "-q", itoa(int64(q.ID))}
		}, rest: "--to end"},
		{key: 's', title: "lag in full", args: func(m *Model, _ string) []string { return []string{"lag", "get", "-g", m.group} }, reads: true},
	},
	clientsView: {{key: 's', title: "show in full", args: onName("client", "get"), reads: true}},
	messageView: {
		{key: 's', title: "what became of it in each group", args: func(m *Model, n string) []string {
			return []string{"message", "track", n, "-t", m.message.Ref.Topic}
		}, reads: true},
		{key: 'r', title: "let a group go on from here", args: func(m *Model, n string) []string {
			return []string{"offset", "reset", "-g", orText(m.group, "GROUP"), "-t", m.message.Ref.Topic, "--to-message", n}
		}},
	},
}

func onName(words ...string) func(*Model, string) []string {
	return func(_ *Model, name string) []string { return append(slices.Clone(words), name) }
}

func orText(s, or string) string {
	if s == "" {
		return or
	}
	return s
}

// menu is an action that is being chosen, and then the end of its line edited.
type menu struct {
	actions []action
	names   []string
	chosen  *action
	rest    string
}

// rowsMeant are the marked rows of the page, else the one under the cursor.
func (m *Model) rowsMeant() []string {
	if m.view == messageView {
		if m.message == nil {
			return nil
		}
		r := m.message.Ref
		return []string{fmt.Sprintf("%s:%d:%d", r.Broker, r.Queue, r.Offset)}
	}
	var out []string
	if m.now != nil && m.view != overview {
		for _, r := range m.grid().rows {
			if m.marks[m.view][r.name] && !slices.Contains(out, r.name) {
				out = append(out, r.name)
			}
		}
	}
	if name := m.under(); len(out) == 0 && name != "" {
		out = []string{name}
	}
	return out
}

// openMenu shows what can be done with the rows that are meant.
func (m *Model) openMenu() {
	names := m.rowsMeant()
	switch {
	case len(actionsOf[m.view]) == 0:
		m.note = "nothing can be done here: actions are on the other pages"
	case len(names) == 0:
		m.note = "there is no row"
	default:
		m.menu = &menu{actions: actionsOf[m.view], names: names}
	}
}

// menuKey takes a key while the menu is open.
func (m *Model) menuKey(k string) tea.Cmd {
	if k == "esc" {
		m.menu = nil
		return nil
	}
	if m.menu.chosen != nil {
		if k == "enter" {
			return m.act()
		}
		m.menu.rest = edit(m.menu.rest, k)
		return nil
	}
	for i := range m.menu.actions {
		a := &m.menu.actions[i]
		if len(k) != 1 || k[0] != a.key {
			continue
		}
		if m.o.ReadOnly != "" && !a.reads {
			m.menu, m.note = nil, m.o.ReadOnly+": nothing is changed"
			return nil
		}
		m.menu.chosen, m.menu.rest = a, a.rest
	}
	return nil
}

// words are the arguments behind mqx admin, one list a row.
func (m *Model) words() (out [][]string) {
	for _, n := range m.menu.names {
		if args := m.menu.chosen.args(m, n); args != nil {
			out = append(out, append(args, strings.Fields(m.menu.rest)...))
		}
	}
	return out
}

// line is a command as a shell takes it.
func (m *Model) line(args []string) string {
	parts := []string{"mqx admin"}
	for _, a := range args {
		parts = append(parts, quoted(a))
	}
	return strings.Join(parts, " ") + m.o.Target
}

// menuLines are the menu on the screen: the choices, then the lines that would be run.
func (m *Model) menuLines(width int) []string {
	head := strings.Join(m.menu.names, ", ")
	out := []string{m.screen.bold(cut("For "+head, width, false)), ""}
	if m.menu.chosen == nil {
		for i := range m.menu.actions {
			a := &m.menu.actions[i]
			line := fmt.Sprintf("  %c  %s", a.key, a.title)
			tone := render.Plain
			if m.o.ReadOnly != "" && !a.reads {
				line, tone = line+"  ("+m.o.ReadOnly+")", render.Dim
			}
			out = append(out, m.screen.paint(cut(line, width, false), tone))
		}
		return append(out, "", "Esc goes back")
	}
	out = append(out, m.menu.chosen.title+":", "")
	for _, args := range m.words() {
		for _, l := range wrap(m.line(args), max(1, width-2)) {
			out = append(out, m.screen.paint("  "+l, render.Accent))
		}
	}
	return append(out, "", "end of the line: "+m.menu.rest+"_", "", "Enter runs it: it shows its plan and asks. Esc goes back.")
}

// act runs the lines, one after the other, outside of the screen.
func (m *Model) act() tea.Cmd {
	lines := m.words()
	run := &commands{}
	for _, args := range lines {
		run.lines = append(run.lines, m.line(args))
		if m.o.Command != nil {
			run.cmds = append(run.cmds, m.o.Command(append([]string{"admin"}, args...)))
		}
	}
	m.menu = nil
	if m.o.Command == nil {
		m.note = "this cluster is made up: " + strings.Join(run.lines, "; ")
		return nil
	}
	return tea.Exec(run, func(err error) tea.Msg { return actedMsg{err} })
}

// actedMsg: the lines have been run.
type actedMsg struct{ err error }

// commands runs lines on the terminal and waits for Enter, so that what they have said
// can be read. It ends with the first that fails.
type commands struct {
	lines  []string
	cmds   []*exec.Cmd
	in     io.Reader
	out, e io.Writer
}

// SetStdin takes the terminal to read from, before Run.
func (c *commands) SetStdin(r io.Reader) { c.in = r }

// SetStdout takes the terminal to write to, before Run.
func (c *commands) SetStdout(w io.Writer) { c.out = w }

// SetStderr takes the terminal for errors, before Run.
func (c *commands) SetStderr(w io.Writer) { c.e = w }

// Run runs them.
func (c *commands) Run() error {
	var failed error
	for i, cmd := range c.cmds {
		fmt.Fprintf(c.out, "\n$ %s\n", c.lines[i])
		cmd.Stdin, cmd.Stdout, cmd.Stderr = c.in, c.out, c.e
		if failed = cmd.Run(); failed != nil {
			fmt.Fprintf(c.out, "\n%v", failed)
			if left := len(c.cmds) - i - 1; left > 0 {
				fmt.Fprintf(c.out, "; %d more were not run", left)
			}
			break
		}
	}
	fmt.Fprint(c.out, "\nEnter goes back to mqx top ")
	if _, err := bufio.NewReader(c.in).ReadString('\n'); err != nil && failed == nil {
		failed = err
	}
	return failed
}
