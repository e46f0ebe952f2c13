package admin

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"mqx/admin/roll"
)

// A roll over real brokers: each is read-only before it is restarted, and has its
// permission back afterwards; one alone is refused.
func TestRollCluster(t *testing.T) {
	ns := startNameServer(t)
	c := newClient(t, ns)
	stops := map[string]func(){}
	dirs, ports := map[string]string{"a": t.TempDir(), "b": t.TempDir()}, map[string]int{}
	startAt := func(name string) {
		cfg := joinConfig(dirs[name], ns, name)
		cfg.Join, cfg.ListenPort = "", ports[name]
		_, stops[name] = startJoining(t, cfg)
	}
	for name := range dirs {
		_, port, err := net.SplitHostPort(closedPort(t))
		if err != nil {
			t.Fatal(err)
		}
		if ports[name], err = strconv.Atoi(port); err != nil {
			t.Fatal(err)
		}
		startAt(name)
	}
	settings := roll.Settings{RouteInterval: 20 * time.Millisecond, Settle: 50 * time.Millisecond, Gate: 20 * time.Second}
	var alone *UnavailableError
	if _, err := c.PlanRoll(t.Context(), RollOptions{Settings: settings}); !errors.As(err, &alone) || !slices.Equal(alone.Brokers, []string{"a", "b"}) {
		t.Fatalf("brokers without a replica: %v", err)
	}
	st, err := c.PlanRoll(t.Context(), RollOptions{Settings: settings, AcceptUnavailable: true})
	if err != nil || len(st.Brokers) != 2 || !st.Brokers[0].Drain {
		t.Fatalf("%+v %v", st, err)
	}
	ResumeRoll(st)
	beside := *st
	beside.Brokers = slices.Clone(st.Brokers)
	var order []string
	saved := 0
	rio := RollIO{
		Owner: "this run",
		Save:  func(*roll.State) error { saved++; return nil }, Poll: 10 * time.Millisecond,
		Restart: func(ctx context.Context, b roll.Broker) error {
			order = append(order, b.Name)
			if o := c.ObserveRoll(ctx, &b); o.Perm != 4 {
				t.Errorf("broker %s is restarted with permission %d", b.Name, o.Perm)
			}
			if len(order) == 1 { // another run, from a copy of the state, is kept out
				var owned *RollOwnedError
				if _, err := c.RunRoll(ctx, &beside, RollIO{Save: func(*roll.State) error { t.Error("it is done beside"); return nil }, Poll: time.Millisecond}); !errors.As(err, &owned) {
					t.Errorf("a second run: %v", err)
				}
				if err := c.RollbackRoll(ctx, &beside, "another"); !errors.As(err, &owned) {
					t.Errorf("a rollback beside the run: %v", err)
				}
				if err := c.rollLease(&beside, "this run").hold(ctx); err != nil {
					t.Errorf("the same owner after a kill: %v", err)
				}
			}
			time.Sleep(2 * time.Millisecond) // the next start is told in ms
			stops[b.Name]()
			startAt(b.Name)
			return nil
		},
	}
	// The configuration of these brokers is in no file: the restart gives the permission back by itself.
	st, err = c.RunRoll(t.Context(), st, rio)
	if err != nil || st.Status != roll.Finished || !slices.Equal(order, []string{"a", "b"}) || saved < 8 {
		t.Fatalf("%+v %v, %q", st, err, order)
	}
	// Paused at its next step, asked for a restart that nobody does.
	st, err = c.PlanRoll(t.Context(), RollOptions{Target: Target{Broker: "b"}, Settings: settings, AcceptUnavailable: true})
	if err != nil {
		t.Fatal(err)
	}
	ResumeRoll(st)
	rio.Paused = func() bool { return true }
	if st, err = c.RunRoll(t.Context(), st, rio); err != nil || st.Status != roll.Paused {
		t.Errorf("paused: %+v %v", st, err)
	}
	rio.Paused, rio.Restart = nil, func(context.Context, roll.Broker) error { return ErrRollAsk }
	ResumeRoll(st)
	if st, err = c.RunRoll(t.Context(), st, rio); err != nil || st.Status != roll.Asking {
		t.Errorf("asking: %+v %v", st, err)
	}
	if err := c.RollbackRoll(t.Context(), st, ""); err != nil || st.Status != roll.RolledBack {
		t.Errorf("rolled back: %+v %v", st, err)
	}
	if o := c.ObserveRoll(t.Context(), &st.Brokers[0]); o.Perm != 6 {
		t.Errorf("permission afterwards: %d", o.Perm)
	}
}
