package inspect

import (
	"sync"
	"time"

	"mqx/internal/vfs"
)

// Reading beside a broker goes in small pieces, and rests between them: what the system does for a reader it does to the
// end, whatever the reader's rank, and a copy out of the page cache keeps a processor and empties its cache.
const (
	pacedRead = 32 << 10              // bytes that are read at once
	pacedWork = time.Millisecond      // how long it works between two rests
	maxRest   = 20 * time.Millisecond // how long it rests at most
)

// SetPace makes all reading of the directory rest between its pieces, so that it takes at most a share of the time of one
// processor, above 0; 1 and more means that it does not rest. It is for a reader of all of a directory that a broker works on.
func (d *Dir) SetPace(share float64) {
	if share <= 0 || share >= 1 {
		d.fds.pace.Store(nil)
		return
	}
	d.fds.pace.Store(newPacer(share, time.Now, time.Sleep))
}

// pacer says when a reader has to rest. It is safe to share; those that share it rest one after the other.
type pacer struct {
	share float64
	now   func() time.Time
	sleep func(time.Duration)

	mu struct {
		sync.Mutex
		since time.Time // the end of the last rest
	}
}

func newPacer(share float64, now func() time.Time, sleep func(time.Duration)) *pacer {
	p := &pacer{share: share, now: now, sleep: sleep}
	p.mu.since = now()
	return p
}

// step is called behind each piece.
func (p *pacer) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := restAfter(p.now().Sub(p.mu.since), p.share)
	if rest == 0 {
		return
	}
	p.sleep(rest)
	p.mu.since = p.now()
}

// restAfter is how long somebody has to rest who worked for some time and is to take a share of it; 0: not yet.
func restAfter(worked time.Duration, share float64) time.Duration {
	if worked < pacedWork {
		return 0
	}
	return min(time.Duration(float64(worked)*(1-share)/share), maxRest)
}

// pacedFile is a file that is read at a pace.
type pacedFile struct {
	vfs.File
	pace *pacer
}

// ReadAt reads piece by piece.
func (f pacedFile) ReadAt(b []byte, off int64) (int, error) {
	for n := 0; ; {
		some := b[n:min(len(b), n+pacedRead)]
		k, err := f.File.ReadAt(some, off+int64(n))
		n += k
		f.pace.step()
		if err != nil || n == len(b) || k < len(some) {
			return n, err
		}
	}
}

// pacedAdvised is a pacedFile of a system that takes advice.
type pacedAdvised struct {
	pacedFile
	vfs.Advised
	vfs.DataSeeker
}

// paced is the file as it is read at a pace.
func paced(f vfs.File, p *pacer) vfs.File {
	if p == nil {
		return f
	}
	g := pacedFile{f, p}
	advised, ok := f.(vfs.Advised)
	seeker, seeks := f.(vfs.DataSeeker)
	if ok && seeks {
		return pacedAdvised{g, advised, seeker}
	}
	return g
}
