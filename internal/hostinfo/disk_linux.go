package hostinfo

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Disk tells of the volume that a directory lies on.
func (r *Reader) Disk(dir string) (*Disk, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	used := int64(fs.Blocks) - int64(fs.Bfree) // what is reserved for the super-user is neither used nor free
	d := &Disk{Path: dir, Total: (used + int64(fs.Bavail)) * fs.Bsize, Free: int64(fs.Bavail) * fs.Bsize}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	d.Device = r.deviceOf(unix.Major(st.Dev), unix.Minor(st.Dev))
	if d.Device != "" {
		d.Rotational = r.rotational(d.Device)
	}
	return d, nil
}

// deviceOf is the whole device of a device number: that of a partition is the one it
// is part of. Empty: there is none, as for memory and network file systems.
func (r *Reader) deviceOf(major, minor uint32) string {
	at, err := filepath.EvalSymlinks(filepath.Join(r.sys, "dev/block", fmt.Sprintf("%d:%d", major, minor)))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(at, "partition")); err == nil {
		at = filepath.Dir(at)
	}
	return filepath.Base(at)
}
