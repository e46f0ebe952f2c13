// Package bundle writes the archive of mqx debug bundle: a tar.gz of texts, each of
// them bounded, with what looks like a secret taken out.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of a bundle.
const (
	MaxFile  = 4 << 20  // bytes of one file; of a longer one the end is kept
	MaxTotal = 64 << 20 // bytes of all files together, before compression
	MaxFiles = 2000
)

// ErrFull says that a bound of the whole bundle is reached.
var ErrFull = errors.New("the bundle is full")

// Entry is one file of a bundle.
type Entry struct {
	Name  string
	Bytes int
	Cut   int64 // bytes at the front that were left out
}

// Writer writes a bundle. It is not safe to share.
type Writer struct {
	gz      *gzip.Writer
	tar     *tar.Writer
	now     time.Time
	total   int
	entries []Entry
}

// New begins a bundle on w, whose files are dated now. The caller closes w after Close.
func New(w io.Writer, now time.Time) *Writer {
	gz := gzip.NewWriter(w)
	return &Writer{gz: gz, tar: tar.NewWriter(gz), now: now}
}

// Text adds a text, without its secrets.
func (w *Writer) Text(name string, text []byte) error {
	kept, cut := tail(text)
	return w.add(name, Redact(kept), cut)
}

// Blob adds bytes that hold no text, such as a profile.
func (w *Writer) Blob(name string, data []byte) error {
	if len(data) > MaxFile {
		return fmt.Errorf("cannot add %q: it has %d bytes, more than %d", name, len(data), MaxFile)
	}
	return w.add(name, data, 0)
}

// Tail adds the end of a text that is size bytes long, from its first whole line on.
func (w *Writer) Tail(name string, r io.ReaderAt, size int64) error {
	from := max(0, size-MaxFile)
	text, err := io.ReadAll(io.NewSectionReader(r, from, size-from))
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", name, err)
	}
	if from > 0 {
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text, from = text[i+1:], from+int64(i)+1
		}
	}
	return w.add(name, Redact(text), from)
}

// tail is the end of a text that fits, from its first whole line on, and how much was cut.
func tail(text []byte) ([]byte, int64) {
	if len(text) <= MaxFile {
		return text, 0
	}
	from := len(text) - MaxFile
	if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
		from += i + 1
	}
	return text[from:], int64(from)
}

func (w *Writer) add(name string, data []byte, cut int64) error {
	if w.total+len(data) > MaxTotal || len(w.entries) >= MaxFiles {
		return fmt.Errorf("cannot add %q: %w", name, ErrFull)
	}
	h := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: w.now, Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("cannot add %q: %w", name, err)
	}
	if _, err := w.tar.Write(data); err != nil {
		return fmt.Errorf("cannot add %q: %w", name, err)
	}
	w.total += len(data)
	w.entries = append(w.entries, Entry{Name: name, Bytes: len(data), Cut: cut})
	return nil
}

// Entries are the files written so far.
func (w *Writer) Entries() []Entry { return w.entries }

// Close ends the archive.
func (w *Writer) Close() error { return errors.Join(w.tar.Close(), w.gz.Close()) }
