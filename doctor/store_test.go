package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mqx/internal/vfs"
	"mqx/store/inspect"
)

func soundStore() *Store {
	return &Store{
		Dir: "/data/store", Now: time.Unix(1_000_000, 0), Retention: 72 * time.Hour,
		Info: &inspect.Info{
			VolumeKnown: true, Volume: vfs.Usage{Total: 100 << 30, Free: 60 << 30}, First: &inspect.Place{},
			LogFiles: []inspect.File{{Path: "1", ModTime: time.Unix(1_000_000, 0)}, {Path: "2"}},
		},
		Report: &inspect.Report{Records: 5},
		Lags:   []inspect.Lag{{State: inspect.LagOK}},
	}
}

func offset(state inspect.LagState, at, least, most int64) inspect.Lag {
	l := inspect.Lag{Min: least, Max: most, Lag: most - at, State: state}
	l.Group, l.Topic, l.Offset = "g", "T", at
	return l
}

var storeCases = []struct {
	rule     string
	want     Verdict
	evidence string
	change   func(s *Store)
}{
	{"store-damaged", Found, "log-rot commitlog/0: bad (3 messages)", func(s *Store) {
		s.Report.Findings = []*inspect.Finding{{Kind: inspect.FindLogRot, File: "commitlog/0", What: "bad", Messages: 3}}
	}},
	{"store-damaged", Unknown, "not verified", func(s *Store) { s.Report = nil }},
	{"store-derived", Found, "queue-missing: gone", func(s *Store) {
		s.Report.Findings = []*inspect.Finding{{Kind: inspect.FindQueueMissing, What: "gone", Derived: true}}
	}},
	{"store-derived", OK, "", func(s *Store) { s.Report.Findings = []*inspect.Finding{{Kind: inspect.FindDirty, Note: true}} }},
	{"store-derived", Unknown, "not verified", func(s *Store) { s.Report = nil }},
	{"store-not-closed", Found, "abort", func(s *Store) { s.Info.InUse.Abort = true }},
	{"store-not-closed", OK, "process 9", func(s *Store) { s.Info.InUse.Abort, s.Info.InUse.Locked, s.Info.InUse.PID = true, true, 9 }},
	{"store-kind", Found, "rocksdb-queues: x", func(s *Store) { s.Info.Kinds = []inspect.Kind{{Name: inspect.KindRocksDBQueues, What: "x"}} }},
	{"store-kind", OK, "", func(s *Store) { s.Info.Kinds = []inspect.Kind{{Name: inspect.KindMQX}} }},
	{"store-offset-beyond", Found, "committed 20, the queue has 0 to 10", func(s *Store) { s.Lags = []inspect.Lag{offset(inspect.LagBeyond, 20, 0, 10)} }},
	{"store-offset-beyond", Unknown, "broken", func(s *Store) { s.LagErr = errors.New("broken") }},
	{"store-deleted-unread", Found, "begins at 5: 3 are gone", func(s *Store) { s.Lags = []inspect.Lag{offset(inspect.LagBelow, 2, 5, 10)} }},
	{"store-deleted-unread", Unknown, "broken", func(s *Store) { s.LagErr = errors.New("broken") }},
	{"store-expires-unread", Found, "has read nothing of 10 messages of T queue 0, and 1 expires at", func(s *Store) {
		s.Now, s.Lags = s.Now.Add(70*time.Hour), []inspect.Lag{offset(inspect.LagOK, 0, 0, 10)}
	}},
	{"store-expires-unread", OK, "", func(s *Store) { s.Lags = []inspect.Lag{offset(inspect.LagOK, 0, 0, 10)} }},
	{"store-expires-unread", Unknown, "--keep", func(s *Store) { s.Retention = 0 }},
	{"store-disk", Found, "at 85 % young files", func(s *Store) { s.Info.Volume.Free = 12 << 30 }},
	{"store-disk", Unknown, "not known", func(s *Store) { s.Info.VolumeKnown = false }},
}

func TestStoreRules(t *testing.T) {
	for _, f := range Diagnose(Evidence{Store: soundStore()}, Choice{}) {
		if f.Verdict != OK || f.Evidence == "" {
			t.Errorf("a sound store: %+v", f)
		}
	}
	asked := map[string]map[Verdict]bool{}
	for _, tt := range storeCases {
		s := soundStore()
		tt.change(s)
		hit := false
		list := verdictOf(t, Evidence{Store: s}, tt.rule)
		for _, f := range list {
			hit = hit || f.Verdict == tt.want && strings.Contains(f.Evidence, tt.evidence)
		}
		if !hit {
			t.Errorf("%s: want %s with %q, got %+v", tt.rule, tt.want, tt.evidence, list)
		}
		if asked[tt.rule] == nil {
			asked[tt.rule] = map[Verdict]bool{}
		}
		asked[tt.rule][tt.want] = true
	}
	// What the shape of the directory tells is always there.
	always := map[string]bool{"store-not-closed": true, "store-kind": true}
	for _, r := range rules {
		if r.Scope == ScopeStore && (!asked[r.ID][Found] || !asked[r.ID][Unknown] && !always[r.ID]) {
			t.Errorf("%s has no case that finds, or none that is unknown", r.ID)
		}
	}
}
