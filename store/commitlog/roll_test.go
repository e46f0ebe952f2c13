package commitlog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store/commitlog"
)

// Where records go at the end of a file of 4096 bytes: a record stays when a blank of 8 bytes fits behind it.
func TestRoll(t *testing.T) {
	const size = 4096
	for _, c := range []struct {
		name   string
		first  int // fills the file up to here
		then   []int32
		batch  bool
		want   []int64 // places of then
		blanks map[int64]int32
	}{
		{name: "exact fit", first: 3000, then: []int32{size - 3000 - 8}, want: []int64{3000}},
		{name: "one byte too long", first: 3000, then: []int32{size - 3000 - 7}, want: []int64{size}, blanks: map[int64]int32{3000: 1096}},
		{name: "remainder of 8", first: size - 8, then: []int32{100}, want: []int64{size}, blanks: map[int64]int32{size - 8: 8}},
		{name: "remainder of 9", first: size - 9, then: []int32{100}, want: []int64{size}, blanks: map[int64]int32{size - 9: 9}},
		{name: "remainder of the record", first: size - 100, then: []int32{100}, want: []int64{size}, blanks: map[int64]int32{size - 100: 100}},
		{name: "batch moves together", first: 3000, then: []int32{500, 600}, batch: true, want: []int64{size, size + 500}, blanks: map[int64]int32{3000: 1096}},
		{name: "batch fits exactly", first: 3000, then: []int32{500, 588}, batch: true, want: []int64{3000, 3500}},
		{name: "single records part", first: 3000, then: []int32{500, 600}, want: []int64{3000, size}, blanks: map[int64]int32{3500: 596}},
		{
			name: "over several files", first: 4000, then: []int32{4000, 4000, 90 + 10, 100}, want: []int64{size, 2 * size, 3 * size, 3*size + 100},
			blanks: map[int64]int32{4000: 96, size + 4000: 96, 2*size + 4000: 96},
		},
	} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/apart=%v", c.name, apart), func(t *testing.T) {
				x := newFixture(t, size)
				l := x.open()
				var counter commitlog.Counter
				as := []*commitlog.Append{one(t, c.first, &counter)}
				if c.batch {
					as = append(as, batch(t, &counter, c.then...))
				} else {
					for _, n := range c.then {
						as = append(as, one(t, int(n), &counter))
					}
				}
				if apart {
					for _, a := range as {
						mustAppend(t, l, a)
					}
				} else {
					mustAppend(t, l, as...)
				}
				got, end := walk(t, l, 0, commitlog.WalkOptions{VerifyBody: true})
				if end.Reason != commitlog.EndLimit || len(got) != 1+len(c.then) {
					t.Fatalf("%v, %+v", got, end)
				}
				for i, r := range got {
					if i > 0 && (r.off != c.want[i-1] || r.size != c.then[i-1]) || r.queue != int64(i) {
						t.Fatalf("record %d: %+v, want place %v", i, r, c.want)
					}
				}
				checkBlanks(t, x, l, c.blanks)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l, again := x.recover()
				if again.Reason != commitlog.EndOfData || again.Offset != end.Offset || l.End() != end.Offset {
					t.Fatalf("after reopening %+v, want %+v", again, end)
				}
			})
		}
	}
}

// checkBlanks looks at the files: full size, a blank where one should be, zeros behind the blank's head.
func checkBlanks(t *testing.T, x *fixture, l *commitlog.Log, blanks map[int64]int32) {
	t.Helper()
	for off, n := range blanks {
		start := off - off%l.FileSize()
		b, err := vfs.ReadFile(x.fs, fmt.Sprintf("%s/%020d", x.dir, start))
		if err != nil || int64(len(b)) != l.FileSize() {
			t.Fatalf("file of %d: %d bytes, %v", off, len(b), err)
		}
		b = b[off-start:]
		magic := int32(binary.BigEndian.Uint32(b[4:]))
		if size := int32(binary.BigEndian.Uint32(b)); size != n || magic != message.MagicBlank {
			t.Fatalf("blank at %d: size %d, magic %#x; want size %d", off, size, magic, n)
		}
		if !bytes.Equal(b[8:], make([]byte, len(b)-8)) {
			t.Fatalf("the blank at %d is followed by something", off)
		}
	}
}

// N015: readers see every record in order while small files roll under them.
func TestN015RolloverUnderReaders(t *testing.T) {
	const fileSize, total, readers = 4096, 3000, 3
	x := newFixture(t, fileSize)
	l := x.open()
	ctx, cancel := context.WithCancel(context.Background())
	var run, wg sync.WaitGroup
	run.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	var appended atomic.Int64
	for i := range readers {
		wg.Go(func() { followLog(t, l, total, i == 0) })
	}
	wg.Go(func() { // a puller: views of what was appended
		for appended.Load() < total {
			end := l.End()
			if end < 200 {
				continue
			}
			off := end - end%fileSize
			if b, release, err := l.View(off, int(min(91, end-off))); err == nil {
				if len(b) == 91 && message.View(b).PhysicalOffset() != off {
					t.Errorf("view at %d shows the record of %d", off, message.View(b).PhysicalOffset())
				}
				release()
			}
		}
	})
	var c commitlog.Counter
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range total / 2 / 5 {
				as := make([]*commitlog.Append, 5)
				for k := range as {
					as[k] = one(t, 100+(i*7+k*13+w)%900, &c)
				}
				l.AppendBatch(as)
				for _, a := range as {
					if a.Err != nil {
						t.Error(a.Err)
					}
				}
				appended.Add(5)
			}
		})
	}
	writers.Wait()
	wg.Wait()
	cancel()
	run.Wait()
	if l.Flushed() != l.End() {
		t.Errorf("after Run: flushed %d, end %d", l.Flushed(), l.End())
	}
	if n := len(files(t, l)); n < 100 {
		t.Errorf("only %d files", n)
	}
}

// followLog walks behind the writer until it has seen total records, in order.
func followLog(t *testing.T, l *commitlog.Log, total int64, hot bool) {
	t.Helper()
	var pos, next int64
	for next < total {
		end, err := l.Walk(pos, commitlog.WalkOptions{Hot: hot, VerifyBody: true}, func(off int64, v message.View) error {
			if v.QueueOffset() != next {
				t.Errorf("at %d: queue offset %d, want %d", off, v.QueueOffset(), next)
			}
			next++
			return nil
		})
		if err != nil || end.Reason != commitlog.EndLimit {
			t.Errorf("walk from %d: %+v, %v", pos, end, err)
			return
		}
		pos = end.Offset
		for next < total && l.End() <= pos {
			runtime.Gosched()
		}
	}
}

func TestNextFileIsReadyAheadAndGoesAtClose(t *testing.T) {
	x := newFixture(t, 4096)
	l := x.open()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(ctx) })
	created := make(chan string, 10)
	x.fs.(*vfs.Mem).Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSyncDir {
			created <- op.Path
		}
		return nil
	})
	var c commitlog.Counter
	mustAppend(t, l, one(t, 1000, &c))
	<-created // the reserver has made the next file and its name durable
	list, err := x.fs.ReadDir(x.dir)
	if err != nil || len(list) != 2 || list[1].Name() != "00000000000000004096" {
		t.Fatalf("files %v, %v", list, err)
	}
	if n := len(files(t, l)); n != 1 {
		t.Fatalf("Files lists %d", n)
	}
	cancel()
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if list, _ = x.fs.ReadDir(x.dir); len(list) != 1 {
		t.Fatalf("after Close: %v", list)
	}
}

func TestAppendRawCopiesALog(t *testing.T) {
	src := newFixture(t, 4096)
	l := src.open()
	var c commitlog.Counter
	for i := range 40 {
		mustAppend(t, l, one(t, 300+i, &c))
	}
	dst := newFixture(t, 4096).open()
	buf := make([]byte, 1000)
	for off := int64(0); off < l.End(); {
		n := min(int64(len(buf)), l.End()-off)
		if err := l.ReadAt(buf[:n], off); err != nil {
			t.Fatal(err)
		}
		if err := dst.AppendRaw(off, buf[:n]); err != nil {
			t.Fatal(err)
		}
		off += n
	}
	if err := dst.AppendRaw(1, buf); err == nil {
		t.Fatal("bytes appended at another place than the end")
	}
	want, _ := walk(t, l, 0, commitlog.WalkOptions{})
	got, end := walk(t, dst, 0, commitlog.WalkOptions{VerifyBody: true})
	if !slices.Equal(got, want) || end.Offset != l.End() {
		t.Fatalf("%d records, end %d; want %d, %d", len(got), end.Offset, len(want), l.End())
	}
}
