package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/internal/storecheck"
	"mqx/nameserver"
	remoteclient "mqx/remoting/client"
)

// Sizes are small, so that files roll and end within a round.
const (
	logFileBytes   = 1 << 20
	queueFileBytes = 20 * 256
	indexSlots     = 1000
	indexEntries   = 4000
	// offsetsEvery is how often committed offsets are saved. Saved ones are never older than offsetsOldest, which leaves
	// much time to a slow disk: it is what Apache's interval promises.
	offsetsEvery  = 100 * time.Millisecond
	offsetsOldest = 5 * time.Second
)

// Limits on waiting: a machine that is this slow has failed the test.
const (
	startLimit = 60 * time.Second
	stopLimit  = 60 * time.Second
	pointLimit = 4 * time.Second // then the point counts as not reached
)

// life is one store and what happens to it.
type life struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	turn turns
	dir  string // everything of this store
	root string // the store itself
	conf string
	port int

	ns      string // address of the name server
	client  *remoteclient.Client
	journal *storecheck.Journal
	offsets *offsetBook
	removed map[string]bool // topics: whether their deletion was answered
	groups  map[string]bool // groups whose creation was answered
	expired bool            // log files were allowed to go

	broker *child
	state  *storecheck.Stopped // what the broker must find, nil before the first round
	saved  map[offsetKey]int64 // committed offsets it must find
	round  int
	plan   plan
	total  totals
}

func newStore(t *testing.T, seed uint64) *life {
	t.Helper()
	s := &life{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), turn: turnsOf(seed), dir: filepath.Join(workDir, fmt.Sprintf("store-%d", seed)),
		journal: &storecheck.Journal{}, offsets: newOffsetBook(), removed: map[string]bool{}, groups: map[string]bool{},
	}
	s.root, s.conf = filepath.Join(s.dir, "store"), filepath.Join(s.dir, "broker.conf")
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.ns = startNameServer(t)
	s.client = remoteclient.New(remoteclient.Config{Logger: slog.New(slog.DiscardHandler)})
	s.port = freePort(t)
	return s
}

// startNameServer runs a name server of this store alone, in this process.
func startNameServer(t *testing.T) string {
	t.Helper()
	cfg := nameserver.DefaultConfig()
	cfg.Logger = slog.New(slog.DiscardHandler)
	if err := cfg.SetListen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s, err := nameserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case err := <-ended:
		t.Fatal(err)
	case <-s.Ready():
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

func (s *life) addr() string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(s.port)) }

func (s *life) writeConf(sync bool) {
	mode := "ASYNC_FLUSH"
	if sync {
		mode = "SYNC_FLUSH"
	}
	text := fmt.Sprintf(`brokerClusterName = crash
brokerName = crash
bindAddress = 127.0.0.1
brokerIP1 = 127.0.0.1
listenPort = %d
namesrvAddr = %s
storePathRootDir = %s
flushDiskType = %s
mappedFileSizeCommitLog = %d
mappedFileSizeConsumeQueue = %d
maxHashSlotNum = %d
maxIndexNum = %d
flushIntervalCommitLog = 50
flushCommitLogThoroughInterval = 300
flushIntervalConsumeQueue = 30
flushConsumeQueueThoroughInterval = 150
flushConsumerOffsetInterval = %d
fileReservedTime = 0
deleteWhen = %02d
cleanFileForciblyEnable = false
waitTimeMillsInSendQueue = 3000
`, s.port, s.ns, s.root, mode, logFileBytes, queueFileBytes, indexSlots, indexEntries, offsetsEvery.Milliseconds(), (time.Now().Hour()+12)%24)
	if err := os.WriteFile(s.conf, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// live goes through n rounds and ends in order.
func (s *life) live(n int) {
	defer s.end()
	for s.round = 1; s.round <= n; s.round++ {
		s.plan = newPlan(s.r, &s.turn)
		s.step()
	}
	s.plan = plan{end: stopped}
	s.settle()
	s.t.Logf("seed %d: %d rounds, %s", s.seed, n, s.summary())
}

func (s *life) summary() string {
	sent, acked := s.journal.Counts()
	return fmt.Sprintf("%d messages sent, %d answered, %d commits", sent, acked, s.total.commits)
}

// end gives everything back and adds up.
func (s *life) end() {
	if s.broker != nil {
		s.broker.kill()
	}
	_ = s.client.Close()
	s.total.sent, s.total.acked = s.journal.Counts()
	if s.t.Failed() {
		s.keep()
		return
	}
	_ = os.RemoveAll(s.dir)
}

// keep leaves everything of a failed round where somebody can look at it.
func (s *life) keep() {
	where := os.Getenv(keepEnv)
	if where == "" {
		where = filepath.Join(os.TempDir(), "mqx-crash-failed")
	}
	where = filepath.Join(where, fmt.Sprintf("%d-%d", s.seed, s.round))
	err := os.RemoveAll(where)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(where), 0o755)
	}
	if err == nil {
		err = copyTree(s.dir, where)
	}
	if f, ferr := os.Create(filepath.Join(where, "journal.json")); ferr == nil {
		err = errors.Join(err, s.journal.Save(f), f.Close())
	}
	s.t.Logf("end of the broker's log:\n%s", tail(filepath.Join(s.dir, "broker.log"), 30))
	s.t.Logf("seed %d round %d (%s) failed; kept in %s (%v)\nagain: %s=%d %s=%d go test ./crash -v\nits store: %s=%s go test ./crash -run TestKeptStore -v",
		s.seed, s.round, s.plan, where, err, seedEnv, s.seed, roundsEnv, s.round, storeEnv, where)
}

// failf ends the test; everything is kept.
func (s *life) failf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d round %d (%s): %s", s.seed, s.round, s.plan, fmt.Sprintf(format, args...))
}

// crashedDir holds what the last death left, openedDir the same after a recovery by this process.
func (s *life) crashedDir() string { return filepath.Join(s.dir, "crashed") }
func (s *life) openedDir() string  { return filepath.Join(s.dir, "opened") }

// copyTree copies files and directories; what is neither is left out. Zeros become holes.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	const block = 64 << 10
	var zeros [block]byte
	for at := 0; at < len(b) && err == nil; at += block {
		part := b[at:min(at+block, len(b))]
		if string(part) != string(zeros[:len(part)]) {
			_, err = f.WriteAt(part, int64(at))
		}
	}
	return errors.Join(err, f.Truncate(int64(len(b))), f.Close())
}
