package crash

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/client"
	"mqx/internal/storecheck"
	"mqx/internal/vfs"
	"mqx/remoting"
	"mqx/store"
)

// storeConfig opens a copy of the broker's store.
func storeConfig(root string) store.Config {
	cfg := store.DefaultConfig()
	cfg.RootDir = root
	cfg.CommitLogFileBytes, cfg.ConsumeQueueFileBytes = logFileBytes, queueFileBytes
	cfg.MaxHashSlotNum, cfg.MaxIndexNum = indexSlots, indexEntries
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// afterDeath looks at what a death left: it is copied, the copy recovered by package store and closed, and what came of
// it compared with everything that is known. served tells whether the broker had started.
func (s *life) afterDeath(at time.Time, served bool) {
	for _, dir := range []string{s.crashedDir(), s.openedDir()} {
		if err := os.RemoveAll(dir); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := os.Stat(s.root); errors.Is(err, fs.ErrNotExist) {
		return // it died before there was anything
	}
	if s.plan.tear && s.plan.end != atStart {
		s.tear()
	}
	if err := copyTree(s.root, s.crashedDir()); err != nil {
		s.t.Fatal(err)
	}
	if err := copyTree(s.root, s.openedDir()); err != nil {
		s.t.Fatal(err)
	}
	s.recover(s.openedDir())
	s.check(s.openedDir())
	s.saved = s.offsets.afterDeath(s, at)
	if _, err := os.Stat(filepath.Join(s.root, "abort")); err != nil && served {
		s.failf("a broker that died left no abort file: %v", err)
	}
}

// recover opens a store and closes it in order.
func (s *life) recover(root string) {
	st, err := store.Open(storeConfig(root))
	if err != nil {
		s.failf("what the death left cannot be opened: %v", err)
	}
	for _, f := range st.Findings() {
		switch f.Kind {
		case store.FindTornTail:
			s.total.torn++
		case store.FindRot, store.FindHole, store.FindQueueGap:
			s.t.Errorf("recovery found %+v", f)
		}
	}
	if err := st.Close(); err != nil {
		s.failf("the recovered store cannot be closed: %v", err)
	}
}

// check compares a store that was closed with the journal, and its parts with each other.
func (s *life) check(root string) {
	got, errs := storecheck.CheckStopped(vfs.OS, root, s.options())
	for _, err := range errs {
		s.t.Error(err)
	}
	if got != nil {
		if n := len(got.Log.Rot); n > 0 {
			s.t.Errorf("the log has %d places without records, the first from %d to %d", n, got.Log.Rot[0].From, got.Log.Rot[0].To)
		}
		if got.Log.Min > 0 && !s.expired {
			s.t.Errorf("the log begins at %d, nothing was allowed to go", got.Log.Min)
		}
		for topic, answered := range s.removed {
			for k, q := range got.Queues {
				if k.Topic == topic && answered && len(q.Units) > 0 {
					s.t.Errorf("queue %s/%d of a deleted topic is there, with %d units", topic, k.ID, len(q.Units))
				}
			}
		}
		s.total.bytes += got.Log.End - got.Log.Min
	}
	if s.t.Failed() {
		s.failf("%d findings", len(errs))
	}
	s.state = got
}

// afterStop checks the store that a clean stop left.
func (s *life) afterStop() {
	if _, err := os.Stat(filepath.Join(s.root, "abort")); !errors.Is(err, fs.ErrNotExist) {
		s.failf("the broker stopped in order and left the abort file (%v)", err)
	}
	s.check(s.root)
	s.saved = s.offsets.afterStop(s)
}

// tear puts the first sectors of a record where the next one would start.
func (s *life) tear() {
	l, err := storecheck.ReadLog(vfs.OS, filepath.Join(s.root, "commitlog"))
	if err != nil || len(l.Records) == 0 {
		return // the newest file has no length yet
	}
	last := l.Records[len(l.Records)-1]
	for i := range l.Records {
		if r := l.Records[i]; r.Size > 1024 {
			last = r // one that has a sector of its own
		}
	}
	start := l.End / l.FileSize * l.FileSize
	name := filepath.Join(s.root, "commitlog", fmt.Sprintf("%020d", last.Phys/l.FileSize*l.FileSize))
	b, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	rec := b[last.Phys%l.FileSize : last.Phys%l.FileSize+int64(last.Size)]
	place := l.End - start
	sectors := (place+int64(last.Size)-1)/512 - (place+40)/512
	if place+int64(last.Size)+8 > l.FileSize || sectors <= 0 {
		return // it would not have been put there, or is not torn
	}
	half := append([]byte(nil), rec[:((place+40)/512+1+s.r.Int64N(sectors))*512-place]...)
	for i := range 8 { // it carries its place
		half[28+i] = byte(uint64(l.End) >> (56 - 8*i))
	}
	f, err := os.OpenFile(filepath.Join(s.root, "commitlog", fmt.Sprintf("%020d", start)), os.O_RDWR, 0)
	if err != nil {
		return // the file is not there yet
	}
	_, err = f.WriteAt(half, place)
	if err := errors.Join(err, f.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// checkServed asks the broker for what it must know: the bounds of queues and committed offsets.
func (s *life) checkServed() {
	if s.state == nil {
		return
	}
	for k, q := range s.state.Queues {
		if _, gone := s.removed[k.Topic]; gone {
			continue
		}
		for code, want := range map[int32]int64{remoting.ReqGetMinOffset: q.Min(s.state.Log.Min), remoting.ReqGetMaxOffset: q.Max()} {
			got, err := s.askOffset(code, &remoting.GetMinOffsetHeader{Topic: k.Topic, QueueID: k.ID})
			if err != nil && s.perished() {
				return
			}
			if err != nil {
				s.failf("%s of %s/%d: %v", remoting.RequestName(code), k.Topic, k.ID, err)
			}
			if got != want {
				s.failf("%s of %s/%d is %d, want %d", remoting.RequestName(code), k.Topic, k.ID, got, want)
			}
		}
	}
	s.offsets.check(s)
}

// perished reports whether the broker is gone because it passed its point.
func (s *life) perished() bool {
	return s.pointOfLife() != "" && s.gone(pointLimit) && s.broker.killed()
}

func (s *life) askOffset(code int32, header any) (int64, error) {
	resp, err := s.call(remoting.NewRequest(code, header))
	if err != nil {
		return 0, err
	}
	n, ok, err := resp.Fields.Int64("offset")
	if err == nil && !ok {
		err = errors.New("the answer has no offset")
	}
	return n, err
}

func (s *life) call(req *remoting.Command) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := s.client.Call(ctx, s.addr(), req)
	if err == nil && resp.Code != remoting.RespSuccess {
		err = &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(req.Code), Addr: s.addr()}
	}
	return resp, err
}

// readEverything reads all topics over the wire and compares with the journal.
func (s *life) readEverything(ctx context.Context) {
	if s.state == nil {
		return
	}
	l := &storecheck.Log{Min: s.state.Log.Min, End: s.state.Log.End}
	counts := map[storecheck.QueueKey]int64{}
	for _, topic := range topics {
		if !slices.ContainsFunc(queuesOf(s.state), func(k storecheck.QueueKey) bool { return k.Topic == topic }) {
			continue
		}
		r, err := client.NewReader(client.ReaderConfig{Config: s.clientConfig(), Topic: topic, Start: client.Position{Kind: client.AtStart}})
		if err != nil {
			s.t.Fatal(err)
		}
		err = r.Read(ctx, func(m *client.Received) error {
			k := storecheck.QueueKey{Topic: topic, ID: m.Queue.QueueID}
			counts[k]++
			l.Records = append(l.Records, storecheck.Record{
				Phys: m.PhysicalOffset, QueueOffset: m.QueueOffset, Topic: topic, QueueID: m.Queue.QueueID, Body: m.Body,
			})
			return nil
		})
		if err := errors.Join(err, r.Close()); err != nil {
			s.failf("topic %s cannot be read: %v", topic, err)
		}
	}
	slices.SortFunc(l.Records, func(a, b storecheck.Record) int { return int(min(max(a.Phys-b.Phys, -1), 1)) })
	for _, err := range s.journal.Check(l) {
		s.t.Errorf("read back: %v", err)
	}
	for k, q := range s.state.Queues {
		if want := q.Max() - q.Min(s.state.Log.Min); slices.Contains(topics, k.Topic) && counts[k] != want {
			s.t.Errorf("%d messages were read from %s/%d, it holds %d", counts[k], k.Topic, k.ID, want)
		}
	}
	s.total.read += len(l.Records)
	if s.t.Failed() {
		s.failf("not everything is served")
	}
}

func queuesOf(st *storecheck.Stopped) []storecheck.QueueKey {
	var out []storecheck.QueueKey
	for k := range st.Queues {
		out = append(out, k)
	}
	return out
}

// contents are the checksums of the files of log, queues and index.
func (s *life) contents() map[string][32]byte {
	out := map[string][32]byte{}
	for _, part := range []string{"commitlog", "consumequeue", "index"} {
		err := filepath.WalkDir(filepath.Join(s.root, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			out[strings.TrimPrefix(path, s.root)] = sha256.Sum256(b)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.t.Fatal(err)
		}
	}
	return out
}

func (s *life) compare(before, after map[string][32]byte) {
	for name, sum := range after {
		if before[name] != sum {
			s.t.Errorf("a second clean start changed %s", name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			s.t.Errorf("a second clean start removed %s", name)
		}
	}
	if s.t.Failed() {
		s.failf("a clean start is not without effect")
	}
}

// TestKeptStore looks again at what a failed round left: MQX_CRASH_STORE names the directory.
func TestKeptStore(t *testing.T) {
	kept := os.Getenv(storeEnv)
	if kept == "" {
		return // nothing is to be looked at
	}
	f, err := os.Open(filepath.Join(kept, "journal.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &life{t: t, root: filepath.Join(t.TempDir(), "store"), expired: true, removed: map[string]bool{}}
	if s.journal, err = storecheck.LoadJournal(f); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(filepath.Join(kept, "crashed"), s.root); err != nil {
		t.Fatal(err)
	}
	cfg := storeConfig(s.root)
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	st, err := store.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	o := s.options()
	o.Gone = func(topic string) bool { return strings.HasPrefix(topic, goneTopic) }
	_, errs := storecheck.CheckStopped(vfs.OS, s.root, o)
	for _, err := range errs {
		t.Error(err)
	}
}
