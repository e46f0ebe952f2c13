package ha

import (
	"cmp"
	"time"
)

// Level is what a master promises of what it acknowledges (docs/replication.md).
type Level string

// The levels.
const (
	// LevelAsync waits for no slave.
	LevelAsync Level = "async"
	// LevelSemiSync waits for some slaves as long as they keep up, else for none: that is recorded.
	LevelSemiSync Level = "semi-sync"
	// LevelSync waits for every slave that is in sync, and for no fewer than Rules.Least.
	LevelSync Level = "sync"
	// LevelQuorum waits for Rules.Copies slaves, whatever happens.
	LevelQuorum Level = "quorum"
)

// Rules are when a message is acknowledged and shown. Slaves are counted without the master.
type Rules struct {
	Level Level
	// Copies are the slaves that must have a message: semi-sync and quorum.
	Copies int
	// Least are the slaves that must be in sync: with fewer nothing is appended that waits for copies.
	Least int
	// Auto makes do with the slaves that are in sync where they are fewer than Copies (enableAutoInSyncReplicas); never
	// with fewer than Least. That is recorded.
	Auto bool
	// Hold shows consumers only what has its copies; without it they see what has been appended.
	Hold bool
	// Flushed counts what is durable at slaves. Who cannot tell that is not counted.
	Flushed bool
	// MaxGap is how far behind, in bytes, a slave in sync may be, and MaxLag for how long it may not have caught up.
	MaxGap int64
	MaxLag time.Duration
	// Semi-sync waits for nobody after DegradeAfter waits in a row that were in vain, or with too few slaves connected for
	// DegradeAlone; it waits again when they have been less than Batch bytes or 100 ms behind for RearmAfter.
	DegradeAfter             int
	DegradeAlone, RearmAfter time.Duration
	Batch                    int64
}

func (r *Rules) setDefaults() {
	r.Level = cmp.Or(r.Level, LevelAsync)
	r.MaxGap, r.MaxLag = cmp.Or(r.MaxGap, 256<<20), cmp.Or(r.MaxLag, 15*time.Second)
	r.DegradeAfter = cmp.Or(r.DegradeAfter, 3)
	r.DegradeAlone, r.RearmAfter = cmp.Or(r.DegradeAlone, 5*time.Second), cmp.Or(r.RearmAfter, 3*time.Second)
	r.Batch = cmp.Or(r.Batch, 32<<10)
}

// Waits reports whether anybody waits for slaves at all.
func (r *Rules) Waits() bool {
	switch r.Level {
	case LevelSync:
		return true
	case LevelSemiSync, LevelQuorum:
		return r.Copies > 0 || r.Least > 0
	}
	return false
}

// degrades reports whether the rules can come to wait for fewer slaves than they say.
func (r *Rules) degrades() bool { return r.Level == LevelSemiSync || r.Level == LevelQuorum && r.Auto }

// Interval is a time in which a master acknowledged what fewer slaves had than its level says. Should the master have been
// lost then, no more could be missing than the bytes from From to To.
type Interval struct {
	From  int64  `json:"fromOffset"` // what is before it had its copies
	To    int64  `json:"toOffset"`   // what follows it had to have them again; -1 while the time lasts
	Epoch int64  `json:"epoch"`      // of the master; 0: none
	Began int64  `json:"fromTime"`   // Unix ms
	Ended int64  `json:"toTime"`     // 0 while it lasts
	Why   string `json:"why"`
}

// Open reports whether the time lasts.
func (i *Interval) Open() bool { return i.To < 0 }

// maxIntervals bounds what is remembered: the oldest go.
const maxIntervals = 64
