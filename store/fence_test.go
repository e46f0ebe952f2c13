package store

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"mqx/internal/vfs"
)

// Puts that have been let in and wait for whoever changes what the store takes are refused by the change: nothing gets
// behind the end that a fence has shown.
func TestPutsThatWaitForAFence(t *testing.T) {
	const puts = 8
	fence := errors.New("a test fences it")
	for _, c := range []struct {
		name   string
		change func(*Store) // under putting
		want   error
	}{
		{"fenced", func(s *Store) { s.fenced.Store(&fence) }, fence},
		{"closing", func(s *Store) { s.closing.Store(true) }, errClosing},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustOpen(t, memConfig(vfs.NewMem()))
			done := make(chan *Put, puts)
			s.putting.Lock()
			for range puts {
				p := &Put{Record: newRecord("T", 0, "late", ""), Done: func(p *Put) { done <- p }}
				go s.PutBatch([]*Put{p})
			}
			awaitPutters(t, puts)
			c.change(s)
			end := s.log.End()
			s.putting.Unlock()
			for range puts {
				if p := <-done; p.Status != ServiceNotAvailable || !errors.Is(p.Err, c.want) {
					t.Errorf("a put that had waited: %v, %v", p.Status, p.Err)
				}
			}
			if got := s.log.End(); got != end {
				t.Errorf("the log has grown from %d to %d", end, got)
			}
		})
	}
}

// awaitPutters waits until n goroutines stand at the lock of PutBatch.
func awaitPutters(t *testing.T, n int) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		at := 0
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "RWMutex).RLock") && strings.Contains(g, ".PutBatch(") {
				at++
			}
		}
		if at == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d puts wait for the lock", at, n)
		}
	}
}
