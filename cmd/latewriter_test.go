package cmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type countedWrites struct {
	bytes.Buffer
	writes int
	err    error
}

func (c *countedWrites) Write(p []byte) (int, error) {
	c.writes++
	if c.err != nil {
		return 0, c.err
	}
	return c.Buffer.Write(p)
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
		if out.writes != 1 {
			t.Errorf("%d writings of 100,000 bytes so far", out.writes)
		}
		time.Sleep(2 * lateAfter)
		synctest.Wait()
		if out.Len() != 100_000 {
			t.Errorf("%d bytes after a while", out.Len())
		}
		if _, err := l.Write([]byte("end")); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil || !strings.HasSuffix(out.String(), "9end") || out.Len() != 100_003 {
			t.Errorf("%d bytes, %v", out.Len(), err)
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
