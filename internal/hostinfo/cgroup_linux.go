package hostinfo

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// noLimit is where version 1 begins to mean that there is no limit: the largest number
// of pages in 63 bits.
const noLimit = int64(1) << 62

// container is the smallest memory limit of the control group of a process and of those
// above it, nil where there is none.
func (r *Reader) container(p procfs.Proc) (*Container, error) {
	groups, err := p.Cgroups()
	if err != nil {
		return nil, err
	}
	var least *Container
	for _, g := range groups {
		var dir, limit, used string
		version := 2
		switch {
		case g.HierarchyID == 0:
			dir, limit, used = filepath.Join(r.sys, "fs/cgroup"), "memory.max", "memory.current"
		case slices.Contains(g.Controllers, "memory"):
			dir, limit, used, version = filepath.Join(r.sys, "fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", 1
		default:
			continue
		}
		// Inside a container the own group is often mounted as the root of the tree, and
		// the path that the kernel tells does not exist: what lies above it is looked at.
		for at := path.Clean("/" + g.Path); ; at = path.Dir(at) {
			c, err := memoryOf(dir, at, limit, used)
			if err != nil {
				return nil, err
			}
			if c != nil && (least == nil || c.Limit < least.Limit) {
				c.Version = version
				least = c
			}
			if at == "/" {
				break
			}
		}
	}
	return least, nil
}

// memoryOf is the limit of one group, nil for none.
func memoryOf(dir, group, limit, used string) (*Container, error) {
	text, err := os.ReadFile(filepath.Join(dir, group, limit))
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(text)) == "max" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &Container{Path: group}
	if c.Limit, err = readNumber(filepath.Join(dir, group, limit)); err != nil {
		return nil, err
	}
	if c.Limit >= noLimit {
		return nil, nil
	}
	if n, err := readNumber(filepath.Join(dir, group, used)); err == nil {
		c.Used = &n
	}
	return c, nil
}
