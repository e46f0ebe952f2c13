package broker

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"mqx/remoting"
)

// Bounds of what is told of the salvage directory.
const (
	keptMost = 10_000
	keptRead = 1 << 20 // bytes of one answer
)

// keptName is a piece of a log: cut from its end, taken away by a repair, or a file of a log that was wiped.
var keptName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[A-Za-z0-9.-]+/)?commitlog-([0-9]{20})-[0-9A-Za-z.]+$|^[A-Za-z0-9.-]+/commitlog/([0-9]{20})$`)
})

func (b *Broker) keptDir() string { return filepath.Join(b.cfg().Store.RootDir, "mqx", "salvage") }

// haKept lists the pieces of logs in the salvage directory.
func (b *Broker) haKept() ([]remoting.HAKept, error) {
	out := []remoting.HAKept{}
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		list, err := b.fsys.ReadDir(filepath.Join(b.keptDir(), filepath.FromSlash(dir)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range list {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				if depth < 2 {
					if err := walk(name, depth+1); err != nil {
						return err
					}
				}
				continue
			}
			m := keptName().FindStringSubmatch(name)
			if m == nil || len(out) >= keptMost {
				continue
			}
			st, err := e.Info()
			if err != nil {
				continue // it went meanwhile
			}
			start, err := strconv.ParseInt(m[1]+m[2], 10, 64)
			if err != nil {
				start = -1
			}
			out = append(out, remoting.HAKept{Name: name, Start: start, Bytes: st.Size(), Time: st.ModTime().UnixMilli()})
		}
		return nil
	}
	return out, walk("", 0)
}

// haRead reads bytes of such a piece; none at its end.
func (b *Broker) haRead(a *remoting.HARead) ([]byte, error) {
	if !keptName().MatchString(a.Name) || strings.Contains(a.Name, "..") || a.Off < 0 || a.Len <= 0 {
		return nil, refuse(remoting.RespInvalidParameter, "%q is no piece of a log in the salvage directory", a.Name)
	}
	f, err := b.fsys.Open(filepath.Join(b.keptDir(), filepath.FromSlash(a.Name)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	out := make([]byte, min(a.Len, keptRead))
	n, err := f.ReadAt(out, a.Off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return out[:n], nil
}
