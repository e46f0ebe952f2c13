package tui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the screens in testdata")

// bench is a program on made-up data, with a clock of its own.
type bench struct {
	t      *testing.T
	m      *Model
	now    time.Time
	source Source
}

func newBench(t *testing.T, many, width, height int) *bench {
	b := &bench{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b.source = &Demo{Start: b.now, Now: func() time.Time { return b.now }, Many: many}
	b.m = NewModel(t.Context(), Options{Source: b, Interval: 2 * time.Second, Now: func() time.Time { return b.now }})
	b.m.settle = 0
	b.m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return b
}

func (b *bench) Read(ctx context.Context, w Want) (*Snapshot, error) { return b.source.Read(ctx, w) }

func (b *bench) Message(ctx context.Context, ref MessageRef) (*Message, error) {
	return b.source.Message(ctx, ref)
}

// refresh lets n intervals pass.
func (b *bench) refresh(n int) {
	for range n {
		b.now = b.now.Add(2 * time.Second)
		b.run(b.m.read())
	}
}

// run does what the program asks for, but for waiting.
func (b *bench) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case snapshotMsg:
		b.m.took(msg)
	case messageMsg:
		b.m.Update(msg)
	case openedMsg:
		_, next := b.m.Update(msg)
		b.run(next)
	default:
	}
}

// keys presses keys, by their names between blanks.
func (b *bench) keys(names string) {
	for name := range strings.FieldsSeq(names) {
		b.run(b.m.key(name))
	}
}

// check compares the screen with a file, and with the size of the terminal.
func (b *bench) check(name string) {
	b.t.Helper()
	got := b.m.Screen() + "\n"
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != b.m.height {
		b.t.Errorf("%s: %d lines on a screen of %d", name, len(lines), b.m.height)
	}
	for i, l := range lines {
		if w := lipgloss.Width(l); w > b.m.width {
			b.t.Errorf("%s: line %d is %d wide on a screen of %d: %s", name, i+1, w, b.m.width, l)
		}
	}
	b.compare(name, got)
}

// checkSize is check with a file for the size.
func (b *bench) checkSize(name string) {
	b.t.Helper()
	b.check(fmt.Sprintf("%s-%dx%d", name, b.m.width, b.m.height))
}

// compare compares a text with a file.
func (b *bench) compare(name, got string) {
	b.t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatalf("%v (go test ./tui -update)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		b.t.Errorf("%s (go test ./tui -update):\n%s", name, d)
	}
}

// Every view at three sizes, on made-up data at a fixed time.
func TestScreens(t *testing.T) {
	for _, size := range sizes {
		b := newBench(t, 0, size[0], size[1])
		b.refresh(20)
		for _, v := range []struct{ name, keys string }{
			{"overview", "1"},
			{"brokers", "2"},
			{"topics", "3"},
			{"groups", "4"},
			{"queues", "4 g enter"},
			{"message", "g enter"},
			{"clients", "5"},
			{"actions", "4 g a"},
			{"action", "r"},
			{"help", "esc ?"},
		} {
			b.keys(v.keys)
			b.checkSize(v.name)
		}
	}
}

// sizes are those of the screens in testdata.
var sizes = [][2]int{{80, 24}, {100, 30}, {140, 40}}

// An empty cluster and one of which nothing is known, at three sizes, and a small terminal.
func TestScreensWithoutData(t *testing.T) {
	for _, size := range sizes {
		b := newBench(t, 0, size[0], size[1])
		b.checkSize("asking")
		b.source = failing{}
		b.refresh(1)
		b.checkSize("unreachable")
		b.source = nothing{b}
		b.refresh(2)
		b.checkSize("empty")
		b.keys("4")
		b.checkSize("empty-groups")
		b.source = failing{} // what was known stays, with the reason
		b.refresh(1)
		b.checkSize("lost")
		b.m.Update(tea.WindowSizeMsg{Width: 20, Height: 5})
		for k := 1; k <= 7; k++ {
			b.keys(fmt.Sprint(k))
			if n := strings.Count(b.m.Screen(), "\n"); n != 4 {
				t.Errorf("view %d has %d lines on a screen of 5", k, n+1)
			}
		}
	}
}

// What the screen says of itself, at three sizes: paused, filtered, marked, a line that is
// typed, something said, a cluster that is read-only, figures that are old.
func TestScreensOfStates(t *testing.T) {
	for _, size := range sizes {
		b := newBench(t, 50, size[0], size[1])
		b.refresh(20)
		b.keys("4 g space j space / u p - 0 4 enter")
		b.checkSize("filtered")
		b.keys("/ n o n e enter")
		b.checkSize("filtered-away")
		b.keys("esc : t o")
		b.checkSize("typing")
		b.keys("esc c")
		b.checkSize("line")
		b.keys("L p")
		b.now = b.now.Add(7 * time.Second)
		b.checkSize("paused")
		b.keys("p")
		b.now = b.now.Add(time.Minute)
		b.checkSize("old")
		b.m.o.ReadOnly = "the context is marked read-only"
		b.refresh(1)
		b.keys("esc")
		b.checkSize("read-only")
		b.keys("a")
		b.checkSize("read-only-actions")
	}
}

type failing struct{}

func (failing) Read(context.Context, Want) (*Snapshot, error) {
	return nil, errors.New("nothing answers at 10.0.0.1:9876")
}

func (failing) Message(context.Context, MessageRef) (*Message, error) {
	return nil, errors.New("nothing answers at 10.0.0.1:9876")
}

type nothing struct{ b *bench }

func (nothing) Message(context.Context, MessageRef) (*Message, error) { return nil, errors.New("none") }

func (n nothing) Read(context.Context, Want) (*Snapshot, error) { return &Snapshot{At: n.b.now}, nil }

// Keys: sorting both ways, filter, marks, scrolling a thousand groups, pause, interval.
func TestKeys(t *testing.T) {
	b := newBench(t, 1000, 100, 30)
	b.refresh(5)
	b.keys("4 G")
	if !strings.Contains(b.m.Screen(), ">") {
		t.Error("the cursor is not seen at the end of the list")
	}
	b.keys("g L")
	up := b.m.under()
	b.keys("L")
	if down := b.m.under(); up == down {
		t.Errorf("the other way round, the cursor is on %q again", down)
	}
	b.keys("/ 9 9 9 enter")
	if g := b.m.grid(); len(g.rows) != 1 || g.rows[0].name != "group-999" {
		t.Errorf("filtered: %d rows", len(g.rows))
	}
	b.keys("space")
	if !strings.Contains(b.m.Screen(), ">*group-999") {
		t.Errorf("no mark:\n%s", b.m.Screen())
	}
	b.keys("esc")
	if len(b.m.grid().rows) != 1005 {
		t.Error("the filter is still there")
	}
	b.keys("- -")
	if b.m.o.Interval != 8*time.Second {
		t.Errorf("interval %s", b.m.o.Interval)
	}
	b.keys("p")
	if b.m.Update(tickMsg{}); b.m.reading {
		t.Error("it reads although it is paused")
	}
	if !strings.Contains(b.m.Screen(), "paused") {
		t.Error("the pause is not said")
	}
	b.keys(": b r enter")
	if b.m.view != brokersView {
		t.Errorf(":br opens %s", b.m.view)
	}
	b.keys(": x enter")
	if !strings.Contains(b.m.Screen(), `no page is called "x"`) {
		t.Error("a page that is not there is not told")
	}
}

// Figures that are old say so, and a broker that died is told with its silence.
func TestStale(t *testing.T) {
	for _, size := range sizes {
		b := newBench(t, 0, size[0], size[1])
		b.refresh(2)
		b.now = b.now.Add(time.Minute)
		if s := b.m.Screen(); !strings.Contains(s, "figures are 1m0s old") && !strings.Contains(s, "figures are 1m old") {
			t.Errorf("old figures are not marked:\n%s", s)
		}
		alive := b.source
		b.source = dying{alive}
		b.refresh(5)
		for _, v := range []struct{ name, keys string }{
			{"overview", "1"}, {"brokers", "2"}, {"topics", "3"}, {"groups", "4"}, {"queues", "4 G enter"}, {"clients", "5"},
		} {
			b.keys(v.keys)
			b.checkSize("silent-" + v.name)
		}
		b.keys("2")
		if s := b.m.Screen(); !strings.Contains(s, "silent for 1m") {
			t.Errorf("the silence of a broker is not told:\n%s", s)
		}
	}
}

// dying is a cluster whose first broker has gone.
type dying struct{ Source }

func (d dying) Read(ctx context.Context, w Want) (*Snapshot, error) {
	s, err := d.Source.Read(ctx, w)
	if err != nil {
		return nil, err
	}
	b := s.Brokers[0]
	s.Brokers[0] = Broker{Cluster: b.Cluster, Name: b.Name, Addr: b.Addr, Err: "gone"}
	for i := range s.Groups {
		s.Groups[i].Queues = slices.DeleteFunc(s.Groups[i].Queues, func(q Queue) bool { return q.Broker == b.Name })
		s.Groups[i].sum(s.At)
	}
	for i := range s.Topics {
		s.Topics[i].End = Num{s.Topics[i].End.V / 2, s.Topics[i].End.OK}
	}
	return s, nil
}

// A queue that lags and does not move is stuck after a while; one whose offset falls has
// gone back.
func TestQueuesThatStand(t *testing.T) {
	h := NewHistory()
	at := time.Unix(0, 0)
	snap := func(committed, end float64) *Snapshot {
		at = at.Add(5 * time.Second)
		q := Queue{Topic: "T", Broker: "b", Committed: Known(committed), End: Known(end), Lag: Known(end - committed)}
		return &Snapshot{At: at, Groups: []Group{{Name: "g", Online: true, Lag: q.Lag, Done: q.Committed, Queues: []Queue{q}}}}
	}
	marks := func(r *Rated) string {
		return strings.Join((&frame{r: r, h: h, now: at, every: time.Second}).marks(&r.Groups[0]), ",")
	}
	for i, want := range []string{"", "", "", "stuck"} {
		if got := marks(h.Add(snap(5, 10+float64(i)))); got != want {
			t.Errorf("after %d refreshes: %q", i+1, got)
		}
	}
	r := h.Add(snap(9, 20))
	if got := marks(r); got != "" {
		t.Errorf("it moves: %q", got)
	}
	if got := r.GroupOut["g"]; got != Known(0.4) { // 4 in the last 10 s
		t.Errorf("it consumes %v a second", got)
	}
	if got := marks(h.Add(snap(2, 20))); got != "went back" {
		t.Errorf("offset 9 -> 2: %q", got)
	}
	at = at.Add(backFor)
	if got := marks(h.Add(snap(20, 20))); got != "" {
		t.Errorf("it has read all: %q", got)
	}
}

// A rate is what came between two snapshots, by their clock; unknown stays unknown.
func TestRates(t *testing.T) {
	at := time.Unix(100, 0)
	before := &Snapshot{At: at, Brokers: []Broker{{Name: "a", Puts: Known(1000)}, {Name: "b", Puts: Known(50)}}, Topics: []Topic{{Name: "T", End: Known(10)}, {Name: "U"}}}
	now := &Snapshot{At: at.Add(4 * time.Second), Brokers: []Broker{{Name: "a", Puts: Known(1400)}, {Name: "b", Puts: Known(0)}}, Topics: []Topic{{Name: "T", End: Known(18)}, {Name: "U"}}}
	r := NewHistory().rate(before, now)
	if r.BrokerIn["/a/"] != Known(100) || r.BrokerIn["/b/"].OK || r.In != Known(100) || r.TopicIn["T"] != Known(2) || r.TopicIn["U"].OK || r.Out.OK {
		t.Errorf("in %v %v, all %v, topics %v, out %v", r.BrokerIn["/a/"], r.BrokerIn["/b/"], r.In, r.TopicIn, r.Out)
	}
	if first := NewHistory().rate(nil, now); first.In.OK || first.TopicIn["T"].OK {
		t.Error("the first snapshot has rates")
	}
}

func TestChart(t *testing.T) {
	got := chart([]float64{0, 1, 2, 3, 4, 5, 6, 7, 8}, 6, 2)
	if want := []string{"⠀⠀⠀⠀⣠⣾", "⠀⠀⣠⣾⣿⣿"}; !cmp.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := chart(nil, 2, 1); got[0] != "⠀⠀" {
		t.Errorf("nothing: %q", got)
	}
}

// What a screen of many rows costs.
func BenchmarkScreen(b *testing.B) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := NewModel(b.Context(), Options{Interval: time.Second, Now: func() time.Time { return now }})
	d := &Demo{Start: now, Now: func() time.Time { return now }, Many: 1000}
	for range 2 {
		now = now.Add(2 * time.Second)
		s, _ := d.Read(b.Context(), Want{})
		m.took(snapshotMsg{s, nil})
	}
	m.view = groupsView
	b.ReportAllocs()
	for b.Loop() {
		_ = m.Screen()
	}
}

// What a key that opens a page of many rows costs until its screen is made.
func BenchmarkPage(b *testing.B) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := NewModel(b.Context(), Options{Interval: time.Second, Now: func() time.Time { return now }, Colour: true})
	m.Update(tea.WindowSizeMsg{Width: 140, Height: 40})
	d := &Demo{Start: now, Now: func() time.Time { return now }, Many: 1000}
	m.o.Source = d
	for range 2 {
		now = now.Add(2 * time.Second)
		s, _ := d.Read(b.Context(), Want{})
		m.took(snapshotMsg{s, nil})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.reading = false
		m.key([]string{"3", "4"}[i%2])
		_ = m.View()
	}
}
