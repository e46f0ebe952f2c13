package testkit

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// GoldenStore unpacks a golden store into a directory of the test's own and returns its root (.../store). Modification
// times are those of the archive. Runs of zeros become holes, so that the 38 MB of a timer wheel take no space.
func GoldenStore(t testing.TB, variant string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unpack(bytes.NewReader(read(t, "store", variant+".tar.zst")), dir); err != nil {
		t.Fatalf("golden store %s: %v", variant, err)
	}
	root := filepath.Join(dir, "store")
	if _, err := os.Stat(root); err != nil {
		t.Fatalf("golden store %s: %v", variant, err)
	}
	return root
}

// UnpackStore unpacks a golden store into a directory: its root is dir/store.
func UnpackStore(variant, dir string) error {
	b, err := os.ReadFile(filepath.Join(Dir(), "store", variant+".tar.zst"))
	if err != nil {
		return err
	}
	return unpack(bytes.NewReader(b), dir)
}

// unpack extracts a zstd-compressed tar of directories and regular files.
func unpack(r io.Reader, dir string) error {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	var dirs []*tar.Header // their times come last, since files put into them change them
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return errors.New("archive names a file outside: " + h.Name)
		}
		name := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			if err := os.MkdirAll(name, 0o755); err != nil {
				return err
			}
			dirs = append(dirs, h)
		case tar.TypeReg, tar.TypeGNUSparse:
			if err := writeSparse(name, tr, h.Size); err != nil {
				return err
			}
			if err := os.Chtimes(name, h.ModTime, h.ModTime); err != nil {
				return err
			}
		default:
			return errors.New("archive has an entry that is no file: " + h.Name)
		}
	}
	for _, h := range dirs {
		if err := os.Chtimes(filepath.Join(dir, h.Name), h.ModTime, h.ModTime); err != nil {
			return err
		}
	}
	return nil
}

// zeros is what writeSparse leaves out.
var zeros = make([]byte, 64<<10)

// writeSparse writes size bytes of r to a new file, leaving holes where whole blocks are zero.
func writeSparse(name string, r io.Reader, size int64) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(size); err != nil {
		return err
	}
	buf := make([]byte, len(zeros))
	for off := int64(0); off < size; {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), size-off)])
		if err != nil {
			return err
		}
		for p := 0; p < n; p += 4096 {
			block := buf[p:min(p+4096, n)]
			if bytes.Equal(block, zeros[:len(block)]) {
				continue
			}
			if _, err := f.WriteAt(block, off+int64(p)); err != nil {
				return err
			}
		}
		off += int64(n)
	}
	return nil
}

// CommitLog returns the bytes of one commit log of an unpacked golden store by physical offset. Holes where a file is
// missing cannot be read.
type CommitLog struct {
	files []logFile
}

type logFile struct {
	start int64
	data  []byte
}

// GoldenCommitLog reads all commit log files of an unpacked golden store.
func GoldenCommitLog(t testing.TB, root string) *CommitLog {
	t.Helper()
	dir := filepath.Join(root, "commitlog")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("golden commit log: %v", err)
	}
	l := &CommitLog{}
	for _, e := range entries {
		var start int64
		for _, c := range strings.TrimLeft(e.Name(), "0") {
			if c < '0' || c > '9' {
				t.Fatalf("golden commit log: strange file %s", e.Name())
			}
			start = start*10 + int64(c-'0')
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatalf("golden commit log: %v", err)
		}
		l.files = append(l.files, logFile{start, data})
	}
	return l
}

// From returns the bytes from a physical offset to the end of its file, nil if no file has it.
func (l *CommitLog) From(off int64) []byte {
	for _, f := range l.files {
		if off >= f.start && off < f.start+int64(len(f.data)) {
			return f.data[off-f.start:]
		}
	}
	return nil
}
