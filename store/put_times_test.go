package store

import (
	"testing"
	"time"

	"mqx/internal/vfs"
)

// copiesLater are slaves that have what is appended when they are told.
type copiesLater struct{ done chan func(bool) }

func (*copiesLater) Admit() error                    { return nil }
func (*copiesLater) Waits() bool                     { return true }
func (c *copiesLater) Wait(_ int64, done func(bool)) { c.done <- done }

// A put says when its append, its flush and its replicas were done, whichever was last.
func TestPutTellsItsTimes(t *testing.T) {
	cfg := memConfig(vfs.NewMem())
	cfg.FlushDiskType = SyncFlush
	slaves := &copiesLater{make(chan func(bool), 1)}
	cfg.Replicas = slaves
	s := mustOpen(t, cfg)
	stop := start(t, s)
	defer stop()
	done := make(chan *Put, 2)
	p := &Put{Record: newRecord("T", 0, "a", ""), WaitFlush: true, Done: func(p *Put) { done <- p }}
	s.PutBatch([]*Put{p})
	copied := <-slaves.done
	time.Sleep(2 * time.Millisecond) // the slaves are later than the append
	copied(true)
	<-done
	if p.Status != PutOK || p.Flushed.Before(p.Appended) || p.Copied.Sub(p.Appended) < 2*time.Millisecond {
		t.Errorf("%v: appended %v, flushed %v, copied %v", p.Status, p.Appended, p.Flushed, p.Copied)
	}
	p = &Put{Record: newRecord("T", 0, "b", ""), Done: func(p *Put) { done <- p }} // waits for nothing
	s.PutBatch([]*Put{p})
	<-done
	if !p.Flushed.IsZero() || !p.Copied.IsZero() || p.Appended.IsZero() {
		t.Errorf("appended %v, flushed %v, copied %v", p.Appended, p.Flushed, p.Copied)
	}
}
