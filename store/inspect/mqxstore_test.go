package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/message"
	"mqx/store"
)

// mqxStores are stores that mqx wrote, one a kind, to be copied.
var mqxStores struct {
	sync.Mutex
	dirs map[uint64]string
}

// mqxStore returns a copy of a store that mqx wrote: with closed (0), closed and cut by retention (1), or as a kill left
// it (2).
func mqxStore(t *testing.T, kind uint64) string {
	t.Helper()
	mqxStores.Lock()
	defer mqxStores.Unlock()
	if mqxStores.dirs == nil {
		mqxStores.dirs = map[uint64]string{}
	}
	if mqxStores.dirs[kind] == "" {
		dir, err := os.MkdirTemp("", "mqx-inspect-") //nolint:usetesting // outlives the test
		if err != nil {
			t.Fatal(err)
		}
		atExit = append(atExit, func() { _ = os.RemoveAll(dir) })
		writeStore(t, filepath.Join(dir, "store"), kind)
		mqxStores.dirs[kind] = filepath.Join(dir, "store")
	}
	root := filepath.Join(t.TempDir(), "store")
	copyTree(t, mqxStores.dirs[kind], root)
	return root
}

// atExit is done when the tests are.
var atExit []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range atExit {
		f()
	}
	os.Exit(code)
}

func mqxConfig(root string) store.Config {
	cfg := store.DefaultConfig()
	cfg.RootDir, cfg.Logger, cfg.Location = root, slog.New(slog.DiscardHandler), time.UTC
	cfg.CommitLogFileBytes, cfg.ConsumeQueueFileBytes, cfg.MaxHashSlotNum, cfg.MaxIndexNum = 128<<10, 2000, 250, 1000
	cfg.MaxMessageBytes = 64 << 10
	return cfg
}

// writeStore writes a store with several log, queue and index files.
func writeStore(t *testing.T, root string, kind uint64) {
	t.Helper()
	s, err := store.Open(mqxConfig(root))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	rnd := rand.New(rand.NewPCG(kind, 1))
	for i := range 900 {
		putOne(t, s, rnd, i)
	}
	live := root
	if kind == 2 {
		live = root + ".live"
		deadline := time.Now().Add(20 * time.Second)
		for s.Dispatched() < s.LogEnd() && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
	if kind == 2 { // what a kill leaves is a copy of the directory in use
		if err := os.Rename(root, live); err != nil {
			t.Fatal(err)
		}
		copyAtOnce(t, live, root)
	}
	cancel()
	if err := <-done; err != nil {
		t.Log(err)
	}
	if err := s.Close(); err != nil && kind != 2 {
		t.Fatal(err)
	}
	if err := os.RemoveAll(root + ".live"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	var topics []string
	for _, topic := range []string{"TopicA", "TopicB", message.TopicSchedule} {
		topics = append(topics, fmt.Sprintf("%q:{\"topicName\":%q,\"readQueueNums\":4,\"writeQueueNums\":4,\"perm\":6}", topic, topic))
	}
	text := "{\"dataVersion\":{},\"topicConfigTable\":{" + strings.Join(topics, ",") + "}}"
	for _, name := range []string{"topics.json", "topics.json.bak"} {
		if err := os.WriteFile(filepath.Join(root, "config", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kind == 1 { // retention has taken the first files
		for _, n := range []int64{0, 128 << 10} {
			if err := os.Remove(filepath.Join(root, "commitlog", fmt.Sprintf("%020d", n))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func putOne(t *testing.T, s *store.Store, rnd *rand.Rand, i int) {
	t.Helper()
	topic, queue := "TopicA", int32(rnd.IntN(4))
	props := message.AppendProperty(nil, message.PropUniqKey, fmt.Sprintf("C000020272F74E0E2F2A9518AA%06X", i))
	switch rnd.IntN(10) {
	case 0, 1, 2:
		topic, queue = "TopicB", int32(rnd.IntN(2))
	case 3:
		topic, queue = message.TopicSchedule, 2
		props = message.AppendProperty(props, message.PropDelay, "3")
	}
	if rnd.IntN(2) == 0 {
		props = message.AppendProperty(props, message.PropKeys, fmt.Sprintf("key%d other%d", i, i%7))
	}
	if rnd.IntN(2) == 0 && topic != message.TopicSchedule {
		props = message.AppendProperty(props, message.PropTags, []string{"TagA", "TagB", "Täg"}[i%3])
	}
	body := make([]byte, 1+rnd.IntN(1500))
	for i := range body {
		body[i] = byte(rnd.IntN(256))
	}
	host := netip.MustParseAddrPort("127.0.0.1:1234")
	put := &store.Put{Record: message.Record{
		QueueID: queue, Topic: []byte(topic), Body: body, Properties: props, BornHost: host, StoreHost: host, BornTimestamp: 1_700_000_000_000,
	}, Done: func(*store.Put) {}}
	s.PutBatch([]*store.Put{put})
	if put.Err != nil {
		t.Fatal(put.Err)
	}
}

// copyTree copies a directory, leaving holes where whole blocks are zero.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.Walk(from, func(path string, st os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if st.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		out, err := os.Create(target)
		if err != nil {
			return err
		}
		if err := out.Truncate(st.Size()); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
		return out.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// copyAtOnce copies a directory that a store is writing to, as it is at one moment: until it has not changed meanwhile.
func copyAtOnce(t *testing.T, from, to string) {
	t.Helper()
	for range 100 {
		copyTree(t, from, to)
		if sameTree(t, from, to) {
			return
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the store never rests")
}

func sameTree(t *testing.T, one, two string) bool {
	t.Helper()
	same := true
	err := filepath.Walk(one, func(path string, st os.FileInfo, err error) error {
		if err != nil || st.IsDir() || !same {
			return err
		}
		rel, err := filepath.Rel(one, path)
		if err != nil {
			return err
		}
		a, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(two, rel))
		if os.IsNotExist(err) {
			same, err = false, nil
		}
		same = same && bytes.Equal(a, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return same
}
