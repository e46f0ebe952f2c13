package store

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mqx/internal/testkit"
)

// better is what a damaged store holds beyond what Apache made of it: rot is stepped over instead of ending the log, and
// a queue or an index is built again on a clean start too.
var better = map[string]struct {
	logEnd   int64
	messages int // all queues together
	findings []FindingKind
}{
	"clean_body_mid_lastfile":  {286950, 89, []FindingKind{FindRot}},
	"clean_cq_tail_zeroed":     {286950, 90, []FindingKind{FindQueueBehind}},
	"clean_cq_missing":         {286950, 90, []FindingKind{FindQueueBehind}},
	"clean_cq_beyond":          {286950, 90, []FindingKind{FindQueueAhead}},
	"clean_index_missing":      {286950, 90, []FindingKind{FindIndexBehind}},
	"clean_midfile_missing":    {286950, 60, nil},
	"clean_lastfile_missing":   {262144, 85, []FindingKind{FindQueueAhead}},
	"clean_lastfile_short":     {271907, 87, []FindingKind{FindQueueAhead}}, // Apache does not start,
	"crash_body_mid_firstfile": {286950, 89, []FindingKind{FindRot, FindDirtyStop}},
	"crash_body_mid_lastfile":  {286950, 89, []FindingKind{FindRot, FindDirtyStop}},
	"crash_magic_mid_lastfile": {286950, 89, []FindingKind{FindRot, FindDirtyStop}},
	"crash_midfile_missing":    {286950, 60, []FindingKind{FindHole, FindDirtyStop}},
	"crash_torn_tail":          {281916, 89, []FindingKind{FindTornTail, FindQueueAhead, FindDirtyStop}},
	"crash_torn_lengthonly":    {281916, 89, []FindingKind{FindTornTail, FindQueueAhead, FindDirtyStop}},
	"crash_tail_bad_crc":       {281916, 89, []FindingKind{FindTornTail, FindQueueAhead, FindDirtyStop}},
	"crash_checkpoint_missing": {286950, 90, []FindingKind{FindCheckpoint, FindDirtyStop}},
	"crash_index_corrupt":      {286950, 90, []FindingKind{FindIndexDamaged, FindIndexBehind, FindDirtyStop}},
	"crash_index_missing":      {286950, 90, []FindingKind{FindIndexBehind, FindDirtyStop}},
	"crash_cq_missing":         {286950, 90, []FindingKind{FindQueueBehind, FindDirtyStop}},
	"crash_cq_tail_zeroed":     {286950, 90, []FindingKind{FindQueueBehind, FindDirtyStop}},
	"crash_kill9_quiet":        {286950, 90, []FindingKind{FindDirtyStop}},
}

// Every damaged store recovers to at least what Apache recovered (N002, N004, N005, N006, N007, N016, N018).
func TestGoldenDamage(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		m := testkit.GoldenManifest(t, variant)
		if m.Recovery == nil {
			continue
		}
		t.Run(variant, func(t *testing.T) {
			cfg := goldenConfig(t, variant, testkit.GoldenStore(t, variant))
			s := mustOpen(t, cfg)
			catchUp(t, s)
			messages := checkDamaged(t, s, variant, m)
			for _, kind := range better[variant].findings {
				if !slices.ContainsFunc(s.Findings(), func(f Finding) bool { return f.Kind == kind }) {
					t.Errorf("no finding %s in %v", kind, s.Findings())
				}
			}
			mustClose(t, s)

			s = mustOpen(t, cfg)
			if f := s.Findings(); len(f) > 0 {
				t.Errorf("findings after repair and a clean stop: %v", f)
			}
			if again := checkDamaged(t, s, variant, m); again != messages {
				t.Errorf("%d messages after another start, %d before", again, messages)
			}
		})
	}
}

func checkDamaged(t *testing.T, s *Store, variant string, m *testkit.Manifest) (messages int) {
	t.Helper()
	apache := m.Recovery.Summary
	for _, q := range apache.Queues {
		got := len(readAll(t, s, q.Topic, q.QueueID, nil))
		messages += got
		low, high := s.MinOffset(q.Topic, q.QueueID), s.MaxOffset(q.Topic, q.QueueID)
		if got < q.Pulled || low > q.MinOffset || high < q.MaxOffset {
			t.Errorf("%s/%d: %d messages in %d..%d, Apache had %d in %d..%d", q.Topic, q.QueueID, got, low, high, q.Pulled, q.MinOffset, q.MaxOffset)
		}
	}
	if len(apache.Queues) == 0 {
		for q := range s.Queues() {
			messages += len(readAll(t, s, q.Topic, q.QueueID, nil))
		}
	}
	want, ok := better[variant]
	if !ok && apache.CommitLogMaxOffset != nil {
		if want.logEnd, _ = apache.CommitLogMaxOffset.Int64(); apache.MessagesPulled != nil {
			want.messages = *apache.MessagesPulled
		}
	}
	if s.LogEnd() != want.logEnd || messages != want.messages {
		t.Errorf("log ends at %d with %d messages, want %d with %d", s.LogEnd(), messages, want.logEnd, want.messages)
	}
	if m.Recovery.ClientView == nil {
		return messages
	}
	for _, q := range m.Recovery.ClientView.QueryByKey {
		res, err := s.Query(context.Background(), QueryRequest{Topic: q.Topic, Key: q.Key, End: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		for _, phys := range q.PhysicalOffsets {
			if !slices.Contains(res.PhysicalOffsets, phys) {
				t.Errorf("query %s %q: %v lacks %d", q.Topic, q.Key, res.PhysicalOffsets, phys)
			}
		}
	}
	return messages
}

// What was cut from the end of the log is kept.
func TestTornTailIsSalvaged(t *testing.T) {
	root := testkit.GoldenStore(t, "crash_torn_tail")
	s := mustOpen(t, goldenConfig(t, "crash_torn_tail", root))
	mustClose(t, s)
	files, err := os.ReadDir(filepath.Join(root, "mqx", "salvage"))
	if err != nil || len(files) != 1 {
		t.Fatalf("salvage: %v, %v", files, err)
	}
	info, err := files[0].Info()
	if err != nil || info.Size() != 2517 {
		t.Errorf("salvaged %d bytes, want the half record of 2517", info.Size())
	}
}

// crash_midwrite: everything that was acknowledged is there.
func TestAcknowledgedMessagesSurviveTheCrash(t *testing.T) {
	const variant = "crash_midwrite"
	m := testkit.GoldenManifest(t, variant)
	s := mustOpen(t, goldenConfig(t, variant, testkit.GoldenStore(t, variant)))
	if len(m.Acknowledged) == 0 {
		t.Fatal("no acknowledged sends")
	}
	have := map[[2]int64]string{}
	for q := range s.Queues() {
		for _, v := range readAll(t, s, q.Topic, q.QueueID, nil) {
			uniq, _ := v.Property("UNIQ_KEY")
			have[[2]int64{int64(q.QueueID), v.QueueOffset()}] = string(uniq)
		}
	}
	for _, a := range m.Acknowledged {
		if have[[2]int64{int64(a.QueueID), a.QueueOffset}] != a.MsgID {
			t.Errorf("acknowledged %s at %d/%d is not there", a.MsgID, a.QueueID, a.QueueOffset)
		}
	}
}
