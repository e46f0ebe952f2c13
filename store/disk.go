package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/vfs"
)

// diskInterval is how often the volumes are looked at. It has a goroutine of its own, so that nothing slow, like the
// deletion of files, keeps it from seeing a disk fill up.
const diskInterval = time.Second

// States of a volume, by the watermarks.
const (
	DiskOK      = "ok"
	DiskReclaim = "reclaim" // expired files go at any hour
	DiskForce   = "force"   // files go although they have not expired
	DiskRefuse  = "refuse"  // messages are refused
	DiskUnknown = "unknown" // the volume could not be asked
)

// DiskError says that messages are refused because a volume is too full.
type DiskError struct {
	Name    string // what lies there: commitlog, consumequeue, index
	Path    string
	UsedPct int
	Limit   int // percent
	Free    int64
}

func (e *DiskError) Error() string {
	return fmt.Sprintf("the volume of %s %q is %d%% full (%d MiB free), messages are refused above %d%% (diskSpaceWarningLevelRatio)",
		e.Name, e.Path, e.UsedPct, e.Free>>20, e.Limit)
}

// disk watches the volumes of a store. It is safe to share.
type disk struct {
	s       *Store
	refusal atomic.Pointer[DiskError]
	mu      struct {
		sync.Mutex
		states []DiskState
	}
}

// paths are the directories whose volumes count.
func (d *disk) paths() []DiskState {
	c := &d.s.cfg
	return []DiskState{
		{Name: "commitlog", Path: c.commitLogDir()},
		{Name: "consumequeue", Path: d.s.cqs.Dir()},
		{Name: "index", Path: d.s.indexDir()},
	}
}

// look asks all volumes and decides what follows.
func (d *disk) look() {
	reclaim, force, refuse := d.s.conf().watermarks()
	states := d.paths()
	var full *DiskError
	for i := range states {
		x := &states[i]
		x.Limit = refuse
		u, err := d.usage(x.Path)
		if err != nil {
			x.State, x.Err = DiskUnknown, err.Error()
			continue
		}
		x.Total, x.Free, x.UsedPct = u.Total, u.Free, int(100*u.Used())
		switch used := 100 * u.Used(); {
		case used > float64(refuse):
			x.State = DiskRefuse
			if full == nil {
				full = &DiskError{x.Name, x.Path, x.UsedPct, refuse, x.Free}
			}
		case used > float64(force):
			x.State = DiskForce
		case used > float64(reclaim):
			x.State = DiskReclaim
		default:
			x.State = DiskOK
		}
	}
	d.mu.Lock()
	d.mu.states = states
	d.mu.Unlock()
	was := d.refusal.Swap(full)
	switch {
	case was == nil && full != nil:
		d.s.cfg.Logger.Error("store: disk full, messages are refused", "err", full)
	case was != nil && full == nil:
		d.s.cfg.Logger.Info("store: messages are accepted again", "path", was.Path)
	}
}

// usage asks a volume; a directory that is not there yet lies where the store lies.
func (d *disk) usage(path string) (vfs.Usage, error) {
	u, err := d.s.cfg.FS.Usage(path)
	if err != nil {
		if up, upErr := d.s.cfg.FS.Usage(d.s.cfg.RootDir); upErr == nil {
			return up, nil
		}
	}
	return u, err
}

// worst is the state that the cleaner acts on: of the log and the queues.
func (d *disk) worst() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	rank := map[string]int{DiskReclaim: 1, DiskForce: 2, DiskRefuse: 3}
	worst := DiskOK
	for _, x := range d.mu.states {
		if rank[x.State] > rank[worst] {
			worst = x.State
		}
	}
	return worst
}

// run looks at the volumes until ctx ends.
func (d *disk) run(ctx context.Context) {
	t := time.NewTicker(diskInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			before := d.worst()
			d.look()
			if after := d.worst(); after != before && after != DiskOK {
				signal(d.s.cleaner.kick) // N026: a filling disk does not wait for the next round
			}
		}
	}
}

// Writeable reports whether puts are accepted, else why not.
func (s *Store) Writeable() (bool, string) {
	status, err := s.refusal()
	if status == PutOK {
		err = s.log.Failed()
	}
	if err != nil {
		return false, err.Error()
	}
	return true, ""
}
