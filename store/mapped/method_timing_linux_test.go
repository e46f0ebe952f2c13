package mapped_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The measurement behind the choice of how the commit log is written (docs/performance.md, "append"): one pwrite a
// batch, or copying into a writable mapping, with and without populating it ahead of the writer.

// logFile is a file of 1 GiB whose first bytes have blocks, as the commit log has them ahead of its writer.
type logFile struct {
	b        *testing.B
	f        *os.File
	m        []byte
	buf      []byte
	useMap   bool
	populate int // bytes populated ahead, 0 = none
	ready    int // populated up to here
}

const methodBlocks = 256 << 20

func newLogFile(b *testing.B, method string) *logFile {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	l := &logFile{b: b, f: f, useMap: method != "pwrite"}
	if method == "map-populated" {
		l.populate = 4 << 20
	}
	if err := f.Truncate(1 << 30); err != nil {
		b.Fatal(err)
	}
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, methodBlocks); err != nil {
		b.Fatal(err)
	}
	l.m, err = unix.Mmap(int(f.Fd()), 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		b.Fatal(err)
	}
	debug.SetPanicOnFault(true)
	b.Cleanup(func() {
		_ = unix.Munmap(l.m)
		_ = f.Close()
	})
	return l
}

func (l *logFile) append(rec []byte, at int) {
	if !l.useMap {
		l.buf = append(l.buf[:0], rec...)
		if _, err := unix.Pwrite(int(l.f.Fd()), l.buf, int64(at)); err != nil {
			l.b.Fatal(err)
		}
		return
	}
	for l.populate > 0 && at+l.populate/2 > l.ready && l.ready < methodBlocks {
		if err := unix.Madvise(l.m[l.ready:l.ready+l.populate], unix.MADV_POPULATE_WRITE); err != nil {
			l.b.Fatal(err)
		}
		l.ready += l.populate
	}
	copy(l.m[at:], rec)
}

func cpuTime() time.Duration {
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// BenchmarkAppendMethod appends records of 1 KiB in batches and syncs at the end, as an asynchronous flush does. An
// operation is one record; cpu-ns/op is what the process spent on it in user and kernel mode.
func BenchmarkAppendMethod(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		for _, method := range []string{"pwrite", "map", "map-populated"} {
			b.Run(fmt.Sprintf("%d/%s", n, method), func(b *testing.B) {
				l := newLogFile(b, method)
				rec := make([]byte, n<<10)
				for i := range rec {
					rec[i] = 1
				}
				b.SetBytes(1 << 10)
				b.ResetTimer()
				cpu, worst := cpuTime(), time.Duration(0)
				for i := 0; i < b.N; i += n {
					start := time.Now()
					l.append(rec, (i<<10)%methodBlocks)
					worst = max(worst, time.Since(start))
				}
				if err := unix.Fdatasync(int(l.f.Fd())); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(float64(worst.Microseconds()), "worst-us")
			})
		}
	}
}

// BenchmarkSyncMethod appends a batch and makes it durable, time after time, beside a writer that does nothing. An
// operation is one batch.
func BenchmarkSyncMethod(b *testing.B) {
	for _, n := range []int{1, 16} {
		for _, method := range []string{"pwrite+fdatasync", "pwrite+msync", "map-populated+fdatasync", "map-populated+msync"} {
			b.Run(fmt.Sprintf("%d/%s", n, method), func(b *testing.B) {
				var how, sync string
				for i, c := range method {
					if c == '+' {
						how, sync = method[:i], method[i+1:]
					}
				}
				l := newLogFile(b, how)
				rec := make([]byte, n<<10)
				b.ResetTimer()
				for i := range b.N {
					at := i * len(rec) % methodBlocks
					rec[0]++
					l.append(rec, at)
					var err error
					if sync == "msync" {
						err = unix.Msync(l.m[at&^4095:at+len(rec)], unix.MS_SYNC)
					} else {
						err = unix.Fdatasync(int(l.f.Fd()))
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
