package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"mqx/message"
)

// ForeignError says that bytes handed to AppendRaw are no records of a log with files of this size. Nothing of the
// record was appended.
type ForeignError struct {
	Off int64 // where the record would begin
	Err error
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("cannot append what follows at %d of another log: %v", e.Off, e.Err)
}

func (e *ForeignError) Unwrap() error { return e.Err }

// maxGap bounds what a log may hold between two records.
const maxGap = 1 << 30

var errNoRecords = errors.New("no record follows within 1 GiB")

var errOtherFileSize = errors.New("a record crosses the end of a file: the other log has files of another size")

// frames follows the records in the bytes that come from another log, which are cut anywhere.
type frames struct {
	at      int64 // position of the next byte
	whole   int64 // behind the last record that has come whole, or the blank behind it
	head    [message.BlankLen]byte
	start   int64  // where the record under way begins: at whole, or behind a gap; needs next
	next    int64  // where it ends, 0 while its head is not known
	through bool   // it is a blank too long to be kept until it is whole
	gap     []byte // not nil: no record begins at whole, and these are the last bytes in which one was looked for
}

// settled is up to where what has come may be written: no record of which only a part has come. There is no checksum of the
// end of a record, and one that lacks some bytes there would be a message after a start.
func (f *frames) settled() int64 {
	switch {
	case f.gap != nil:
		return f.at - int64(len(f.gap))
	case f.next == 0:
		return f.whole
	case f.through:
		return f.at
	}
	return f.start
}

// rewind goes back to settled: what is behind comes once more.
func (f *frames) rewind() {
	at := f.settled()
	if f.at == at {
		return
	}
	f.at, f.next, f.gap = at, 0, nil
	if at > f.whole { // within a gap
		f.gap = []byte{}
	}
}

// take goes over bytes within one file, which ends at fileEnd.
func (f *frames) take(b []byte, fileEnd int64) error {
	for len(b) > 0 {
		if f.gap != nil {
			n, err := f.search(b, fileEnd)
			if err != nil {
				return err
			}
			b = b[n:]
			continue
		}
		if f.next == 0 && fileEnd-f.whole < message.BlankLen {
			f.start, f.next, f.through = f.whole, fileEnd, false
		}
		if f.next == 0 {
			n := copy(f.head[f.at-f.whole:], b)
			b, f.at = b[n:], f.at+int64(n)
			if f.at-f.whole < message.BlankLen {
				return nil
			}
			if err := f.begin(fileEnd); err != nil {
				return err
			}
		} else {
			n := min(int64(len(b)), f.next-f.at)
			b, f.at = b[n:], f.at+n
		}
		if f.next > 0 && f.at >= f.next {
			f.whole, f.next = f.next, 0
		}
	}
	return nil
}

// search looks behind a place where no record begins for the next one, as a start does after a loss of power: the other log
// has stepped over the gap. It returns how much of b, which lies in one file, it has used.
func (f *frames) search(b []byte, fileEnd int64) (int, error) {
	if f.at-f.whole > maxGap {
		return 0, &ForeignError{Off: f.whole, Err: errNoRecords}
	}
	have := len(f.gap)
	look := slices.Concat(f.gap, b)
	from := f.at - int64(have) // of look
	for i := NextHead(look, from, 0); i >= 0; i = NextHead(look, from, i+1) {
		size, magic, err := message.PeekRecord(look[i:])
		start := from + int64(i)
		if err != nil || magic == message.MagicBlank || size > maxRecordSize || start+int64(size) > fileEnd {
			continue
		}
		f.gap, f.start, f.next, f.through = nil, start, start+int64(size), false
		used := max(0, min(i+int(size), len(look))-have)
		if f.at += int64(used); f.at >= f.next {
			f.whole, f.next = f.next, 0
		}
		return used, nil
	}
	f.at += int64(len(b))
	f.gap = look[max(0, len(look)-ScanHead+1):]
	if f.at == fileEnd {
		f.gap = []byte{} // records do not cross the ends of files
	}
	return len(b), nil
}

// begin reads the head of the record at whole.
func (f *frames) begin(fileEnd int64) error {
	size, magic, err := message.PeekRecord(f.head[:])
	if err != nil {
		f.gap = append([]byte{}, f.head[:]...)
		return nil //nolint:nilerr // another log may hold such a gap
	}
	f.start, f.next, f.through = f.whole, f.whole+int64(size), false
	switch blank := magic == message.MagicBlank; {
	case blank && f.next == fileEnd:
		f.through = size > maxRecordSize
	case blank, f.next > fileEnd:
		return &ForeignError{Off: f.whole, Err: errOtherFileSize}
	case size > maxRecordSize: // no record, as a start has it
		f.gap, f.next = append([]byte{}, f.head[:]...), 0
	}
	return nil
}

// Watch makes every append signal ch, which has room for one signal, until stop is called.
func (l *Log) Watch(ch chan struct{}) (stop func()) {
	l.setWatchers(func(list []chan struct{}) []chan struct{} { return append(list, ch) })
	return func() {
		l.setWatchers(func(list []chan struct{}) []chan struct{} {
			kept := list[:0]
			for _, c := range list {
				if c != ch {
					kept = append(kept, c)
				}
			}
			return kept
		})
	}
}

func (l *Log) setWatchers(change func([]chan struct{}) []chan struct{}) {
	l.segMu.Lock()
	defer l.segMu.Unlock()
	var list []chan struct{}
	if p := l.watchers.Load(); p != nil {
		list = append(list, *p...)
	}
	if list = change(list); len(list) == 0 {
		l.watchers.Store(nil)
		return
	}
	l.watchers.Store(&list)
}

// tellWatchers signals those who watch.
func (l *Log) tellWatchers() {
	if p := l.watchers.Load(); p != nil {
		for _, ch := range *p {
			wake(ch)
		}
	}
}
