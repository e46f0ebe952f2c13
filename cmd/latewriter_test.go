package cmd

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// countedWrites is safe to share: late output comes from a timer.
type countedWrites struct {
	mu struct {
		sync.Mutex
		b      bytes.Buffer
		writes int
	}
	err error
}

// state is what has come: how many writings, and the text.
func (c *countedWrites) state() (writes int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.writes, c.mu.b.String()
}

func (c *countedWrites) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.writes++
	if c.err != nil {
		return 0, c.err
	}
	return c.mu.b.Write(p)
}

// Many rows go out together, a lone one after a moment, and nothing is lost or written twice.
func TestLateWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out countedWrites
		l := newLateWriter(&out)
		for range 10_000 {
			if _, err := l.Write([]byte("0123456789")); err != nil {
				t.Fatal(err)
			}
		}
		if writes, _ := out.state(); writes != 1 {
			t.Errorf("%d writings of 100,000 bytes so far", writes)
		}
		time.Sleep(2 * lateAfter)
		synctest.Wait()
		if _, text := out.state(); len(text) != 100_000 {
			t.Errorf("%d bytes after a while", len(text))
		}
		if _, err := l.Write([]byte("end")); err != nil {
			t.Fatal(err)
		}
		err := l.Close()
		if _, text := out.state(); err != nil || !strings.HasSuffix(text, "9end") || len(text) != 100_003 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
}

func TestLateWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := countedWrites{err: errors.New("no more")}
		l := newLateWriter(&out)
		if _, err := l.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * lateAfter)
		synctest.Wait()
		if _, err := l.Write([]byte("y")); err == nil {
			t.Error("a writing that failed later is not told")
		}
		if err := l.Close(); err == nil {
			t.Error("nor at the end")
		}
	})
}
