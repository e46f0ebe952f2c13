package tui

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// Actions: on the marked rows, as lines of mqx admin; nothing when it is read-only.
func TestActions(t *testing.T) {
	b := newBench(t, 0, 100, 30)
	b.refresh(5)
	b.m.o.Target = " -n '10.0.0.1:9876'"
	var ran [][]string
	b.m.o.Command = func(args []string) *exec.Cmd {
		ran = append(ran, args)
		return exec.Command("true")
	}
	b.keys("4 g space j space j a")
	b.check("actions-marked")
	b.keys("r ctrl+u - - t o space s t a r t")
	if s := b.m.Screen(); !strings.Contains(s, "mqx admin offset reset -g billing --all --to start -n '10.0.0.1:9876'") || !strings.Contains(s, "-g audit --all --to start") {
		t.Errorf("the lines are not shown:\n%s", s)
	}
	b.keys("enter")
	want := []string{"admin offset reset -g billing --all --to start", "admin offset reset -g audit --all --to start"}
	for i, w := range want {
		if i >= len(ran) || strings.Join(ran[i], " ") != w {
			t.Fatalf("it runs %q, want %q", ran, want)
		}
	}
	b.keys("esc")
	if len(b.m.marks[groupsView]) != 0 {
		t.Error("Esc does not take the marks away")
	}
	b.keys("3 g a p")
	if s := b.m.Screen(); !strings.Contains(s, "mqx admin topic set ") || !strings.Contains(s, "--perm r -n") {
		t.Errorf("no line for the topic:\n%s", s)
	}
	b.keys("esc")
	b.m.o.ReadOnly = "refused by --read-only"
	b.keys("a")
	b.check("actions-read-only")
	b.keys("d")
	if s := b.m.Screen(); !strings.Contains(s, "nothing is changed") || b.m.menu != nil {
		t.Errorf("read-only:\n%s", s)
	}
	b.keys("a s")
	if s := b.m.Screen(); !strings.Contains(s, "mqx admin topic get ") {
		t.Errorf("what only reads is refused:\n%s", s)
	}
	b.keys("esc c")
	if s := b.m.Screen(); !strings.Contains(s, "mqx admin topic get ORDERS -n") {
		t.Errorf("no line that says more:\n%s", s)
	}
	b.keys("4 g enter g a r")
	if b.m.menu != nil || len(ran) != 2 {
		t.Error("an offset may be reset on a cluster that is read-only")
	}
}

// What is run says so, and ends with the first that fails.
func TestCommands(t *testing.T) {
	var out strings.Builder
	c := &commands{lines: []string{"one", "two", "three"}, cmds: []*exec.Cmd{exec.Command("echo", "1"), exec.Command("false"), exec.Command("echo", "3")}}
	c.SetStdin(strings.NewReader("\n"))
	c.SetStdout(&out)
	c.SetStderr(&out)
	if err := c.Run(); err == nil {
		t.Error("no error")
	}
	if want := "\n$ one\n1\n\n$ two\n\nexit status 1; 1 more were not run\nEnter goes back to mqx top "; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// The mouse: pages, titles, rows, and a second click as Enter.
func TestMouse(t *testing.T) {
	b := newBench(t, 0, 100, 30)
	b.refresh(5)
	click := func(x, y int) { b.run(b.m.click(x, y)) }
	click(41, 1)
	if b.m.view != groupsView {
		t.Fatalf("a click on its name opens %s", b.m.view)
	}
	click(3, 3)
	if o := b.m.orders[groupsView]; o.letter != 'G' {
		t.Errorf("a click on a title sorts by %c", o.letter)
	}
	click(5, 6)
	if b.m.cursor[groupsView] != 2 {
		t.Errorf("the cursor is on row %d", b.m.cursor[groupsView])
	}
	click(5, 6)
	if b.m.view != queuesView {
		t.Errorf("the second click opens %s", b.m.view)
	}
	b.m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if b.m.cursor[queuesView] != 1 {
		t.Error("the wheel does not move")
	}
	b.keys("m")
	if b.m.View().MouseMode == tea.MouseModeNone {
		t.Error("m does not turn the mouse on")
	}
}

// A layout is kept and taken over; one that is none is told.
func TestLayout(t *testing.T) {
	b := newBench(t, 0, 100, 30)
	b.refresh(2)
	var kept Layout
	b.m.o.Save = func(l Layout) error { kept = l; return nil }
	b.keys("3 Q")
	b.keys("Q + m w")
	want := Layout{View: "topics", Interval: "1s", Mouse: true, Sort: map[string]string{"topics": "Q"}}
	if kept.View != want.View || kept.Interval != want.Interval || !kept.Mouse || kept.Sort["topics"] != "Q" || len(kept.Sort) != 1 || kept.Check() != nil {
		t.Errorf("%+v", kept)
	}
	kept.Theme = "dark"
	m := NewModel(t.Context(), Options{Source: b, Layout: kept, Now: b.m.o.Now, Colour: true})
	if m.view != topicsView || m.o.Interval.String() != "1s" || !m.mouse || m.orders[topicsView] != (order{'Q', false}) || m.screen.theme.Name != "dark" {
		t.Error("the layout is not taken over")
	}
	b.m.o.Save = func(Layout) error { return errors.New("cannot save: no room") }
	if b.keys("w"); b.m.note != "cannot save: no room" {
		t.Errorf("%q", b.m.note)
	}
	for _, bad := range []Layout{{View: "x"}, {Theme: "x"}, {Interval: "1ms"}, {Sort: map[string]string{"topics": ""}}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// A message is opened from its queue and by its name, and those beside it.
func TestMessage(t *testing.T) {
	b := newBench(t, 0, 100, 30)
	b.refresh(2)
	b.keys("4 g enter g enter")
	if b.m.view != messageView || b.m.message == nil {
		t.Fatalf("Enter on a queue opens %s", b.m.view)
	}
	at := b.m.message.Ref.Offset
	b.keys(">")
	if got := b.m.message.Ref.Offset; got != at+1 {
		t.Errorf("the next one is at %d", got)
	}
	b.keys("< < esc")
	if b.m.message.Ref.Offset != at-1 || b.m.view != queuesView {
		t.Errorf("at %d, page %s", b.m.message.Ref.Offset, b.m.view)
	}
	b.keys(": m space T space b : 2 : 7 enter")
	if r := b.m.message.Ref; r != (MessageRef{Topic: "T", Broker: "b", Queue: 2, Offset: 7}) {
		t.Errorf("%+v", r)
	}
	b.keys("a r")
	if s := b.m.Screen(); !strings.Contains(s, "-t T --to-message b:2:7") {
		t.Errorf("no line:\n%s", s)
	}
	b.keys("esc : m space b : x : 7 enter")
	if !strings.Contains(b.m.note, ":m TOPIC BROKER:QUEUE:OFFSET") {
		t.Errorf("%q", b.m.note)
	}
	b.source = failing{}
	b.keys(": m space 0 0 enter")
	if s := b.m.Screen(); !strings.Contains(s, "cannot read the message: nothing answers") {
		t.Errorf("the failure is not told:\n%s", s)
	}
}

// Sizes from tiny to very wide: no line is longer than the screen, at any page.
func TestResize(t *testing.T) {
	b := newBench(t, 50, 80, 24)
	b.refresh(8)
	for _, size := range [][2]int{{20, 5}, {40, 10}, {80, 24}, {133, 43}, {400, 100}, {80, 24}} {
		b.m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, keys := range []string{"1", "2", "3", "4", "4 enter", "enter", "5", "4 a", "r", "esc ?", "x"} {
			b.keys(keys)
			lines := strings.Split(b.m.Screen(), "\n")
			if len(lines) != size[1] {
				t.Errorf("%dx%d %s: %d lines", size[0], size[1], keys, len(lines))
			}
			for _, l := range lines {
				if w := textWidth(l); w > size[0] {
					t.Errorf("%dx%d %s: a line of %d: %q", size[0], size[1], keys, w, l)
				}
			}
		}
	}
}
