package storecheck

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"

	"mqx/internal/vfs"
)

// Ext is a unit of consumequeue_ext.
type Ext struct {
	StoreTime int64
	BitMap    []byte
}

const extHead = 20

// lostExt is a unit without the extension that it points to.
type lostExt struct {
	phys int64
	what string
}

// resolve puts the real tags codes in the place of the addresses of extension units.
func (q *Queue) resolve(fsys vfs.FS, dir string) error {
	files, err := numbered(fsys, dir)
	if err != nil {
		return err
	}
	var all [][]byte
	for _, f := range files {
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, f.name))
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	q.Exts = map[int64]Ext{}
	end := int64(0)
	for i := range q.Units {
		u := &q.Units[i]
		if u.TagsCode > math.MinInt32-1 {
			continue
		}
		at := u.TagsCode - math.MinInt64
		var b []byte
		for j, f := range files {
			if at >= f.start && at < f.start+int64(len(all[j])) {
				b = all[j][at-f.start:]
			}
		}
		size := 0
		if len(b) >= extHead {
			size = int(binary.BigEndian.Uint16(b))
		}
		if size < extHead || size > len(b)-4 || int(binary.BigEndian.Uint16(b[18:])) != size-extHead || at < end {
			q.lost = append(q.lost, lostExt{u.Phys, fmt.Sprintf("unit %d points to byte %d of the extension, where no unit of its own is", q.First+int64(i), at)})
			continue
		}
		end = at + int64(size)
		u.TagsCode = int64(binary.BigEndian.Uint64(b[2:]))
		q.Exts[q.First+int64(i)] = Ext{int64(binary.BigEndian.Uint64(b[10:])), b[extHead:size]}
	}
	return nil
}
