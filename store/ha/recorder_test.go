package ha

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// quietLog is a log that nobody reads from.
type quietLog struct {
	Log
	end int64
}

func (l *quietLog) LogEnd() int64 { return l.end }

// The end of a time of fewer copies is recorded, however often that fails, and told once.
func TestEndIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var saved []Interval
		fails := 0
		m := NewMaster(MasterConfig{
			Log: &quietLog{end: 100}, Logger: slog.New(slog.NewTextHandler(&out, nil)), Rules: Rules{Level: LevelSemiSync, Copies: 1},
			Record: func(list []Interval) error {
				if n := len(list); n > 0 && !list[n-1].Open() && fails < 3 {
					fails++
					return errors.New("no space left")
				}
				saved = list
				return nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { m.recorder(ctx) })
		wg.Go(func() { m.tick(ctx) })
		m.event(func(*Group, time.Time) {})
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(saved) != 1 || !saved[0].Open() {
			t.Fatalf("recorded %+v", saved)
		}
		m.SetRules(Rules{Level: LevelAsync}, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		wg.Wait()
		if fails != 3 || len(saved) != 1 || saved[0].Open() {
			t.Errorf("after %d failures recorded is %+v", fails, saved)
		}
		if text := out.String(); strings.Count(text, "with fewer copies than") != 1 || strings.Count(text, "have the copies again") != 1 {
			t.Errorf("told:\n%s", text)
		}
	})
}

// What a group decides on is told when it differs from what was told last.
func TestTell(t *testing.T) {
	old := Interval{From: 1, To: 2, Began: 1, Ended: 2}
	open := Interval{From: 5, To: -1, Began: 5, Why: "why"}
	ended := Interval{From: 5, To: 9, Began: 5, Ended: 9, Why: "why"}
	for _, tt := range []struct {
		was, is Interval
		want    string
	}{
		{Interval{}, Interval{}, ""},
		{old, old, ""},
		{open, open, ""},
		{old, open, "with fewer copies than"},
		{open, ended, "have the copies again"},
		{open, old, "none was acknowledged with fewer"},
		{open, Interval{}, "none was acknowledged with fewer"},
	} {
		var out bytes.Buffer
		m := &Master{cfg: MasterConfig{Logger: slog.New(slog.NewTextHandler(&out, nil))}}
		m.tell(tt.was, tt.is)
		if got := out.String(); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%+v after %+v: %q", tt.is, tt.was, got)
		}
	}
}

// A wait that was made shorter does not end before those that began earlier.
func TestDeadlinesDoNotGoBack(t *testing.T) {
	x := newGroupTest(t, Rules{Level: LevelQuorum, Copies: 1}, 0)
	x.g.Appended(20)
	x.wait("long", 10)
	x.g.Wait(&Waiter{End: 20, Deadline: x.now.Add(time.Second), Done: func(ok bool) { x.got = append(x.got, "short") }}, x.now)
	x.after(2 * time.Second)
	x.want()
	x.after(time.Second)
	if d := x.want("longfalse", "short"); !d.Next.IsZero() {
		t.Errorf("the next deadline is %v", d.Next)
	}
}

// Reports of a slave never go back, whoever has asked first how far its log goes.
func TestReportsDoNotGoBack(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	l := &link{f: NewFollower(FollowerConfig{Silence: time.Minute}), c: a}
	go func() {
		defer a.Close()
		for _, end := range []int64{0, 10, 5, 12} {
			_ = l.report(func() int64 { return end })
		}
	}()
	got, err := io.ReadAll(b)
	var want []byte
	for _, end := range []int64{0, 10, 10, 12} {
		want = appendReport(want, end)
	}
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("reports %x, %v", got, err)
	}
}
