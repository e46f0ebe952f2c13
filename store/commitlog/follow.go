package commitlog

import (
	"errors"
	"fmt"

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

var errOtherFileSize = errors.New("a record crosses the end of a file: the other log has files of another size")

// frames follows the records in the bytes that come from another log, which are cut anywhere.
type frames struct {
	at    int64 // position of the next byte
	whole int64 // behind the last record that has come whole, or the blank behind it
	head  [message.BlankLen]byte
	next  int64 // where the record at whole ends, 0 while its head is not known
}

// take goes over bytes within one file, which ends at fileEnd.
func (f *frames) take(b []byte, fileEnd int64) error {
	for len(b) > 0 {
		if f.next == 0 && fileEnd-f.whole < message.BlankLen {
			f.next = fileEnd
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
		if f.at == f.next {
			f.whole, f.next = f.next, 0
		}
	}
	return nil
}

// begin reads the head of the record at whole.
func (f *frames) begin(fileEnd int64) error {
	size, magic, err := message.PeekRecord(f.head[:])
	if err != nil {
		return &ForeignError{Off: f.whole, Err: err}
	}
	switch f.next = f.whole + int64(size); {
	case magic == message.MagicBlank && f.next == fileEnd:
	case magic == message.MagicBlank, f.next > fileEnd:
		return &ForeignError{Off: f.whole, Err: errOtherFileSize}
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
