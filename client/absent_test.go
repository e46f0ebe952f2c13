package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
)

// One broker that hangs, or refuses, hides nothing of the others.
func TestReadGoesOnWithoutABroker(t *testing.T) {
	hang := func(r *server.Request) bool { r.Done(); return true }
	refuse := func(r *server.Request) bool { r.Reply(remoting.RespNoPermission, "not today"); return true }
	for _, c := range []struct {
		what string
		code int32
		do   func(*server.Request) bool
	}{
		{"hangs when asked for the start", remoting.ReqGetMinOffset, hang},
		{"hangs when asked for the end", remoting.ReqGetMaxOffset, hang},
		{"refuses to be read", remoting.ReqPullMessage, refuse},
		{"hangs when read", remoting.ReqPullMessage, hang},
	} {
		t.Run(c.what, func(t *testing.T) {
			ns := startNameServer(t)
			good, bad := startBroker(t, ns, "a", "T:2"), startBroker(t, ns, "b", "T:2")
			for _, b := range []*fakeBroker{good, bad} {
				b.fill(0, bodies("p", 3), "", 1000)
				b.fill(1, bodies("q", 3), "", 1000)
			}
			bad.intercept(c.code, c.do)
			read := func(missing func(string, error), brokers ...string) ([]string, error) {
				cfg := ReaderConfig{Config: Config{NameServers: []string{ns}, Timeout: 100 * time.Millisecond}, Topic: "T", Brokers: brokers, Missing: missing}
				r, err := NewReader(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = r.Close() }()
				var got []string
				err = r.Read(context.Background(), func(m *Received) error { got = append(got, string(m.Body)); return nil })
				slices.Sort(got)
				return got, err
			}
			var missing []string
			note := func(broker string, err error) {
				if err == nil {
					t.Error("no reason is told")
				}
				missing = append(missing, broker)
			}
			got, err := read(note)
			if want := []string{"p0", "p1", "p2", "q0", "q1", "q2"}; err != nil || !slices.Equal(got, want) || !slices.Equal(missing, []string{"b"}) {
				t.Errorf("read %v, missing %v, %v", got, missing, err)
			}
			if _, err := read(note, "b"); err == nil {
				t.Error("no broker was left, and that was no error")
			}
			if _, err := read(nil); err == nil {
				t.Error("a missing broker that nobody is told of was no error")
			}
			if _, err := read(nil, "b"); errors.Is(err, context.Canceled) {
				t.Errorf("the reason is lost: %v", err)
			}
		})
	}
}
