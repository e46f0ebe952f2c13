package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"mqx/internal/fastjson"
	"mqx/internal/vfs"
	"mqx/store"
)

// maxConfigFile bounds a file of config/.
const maxConfigFile = 512 << 20

// JSONFile is a configuration file and its backup.
type JSONFile struct {
	Name     string // topics.json
	Main     *JSONCopy
	Backup   *JSONCopy // name.bak
	Leftover bool      // name.tmp is there: a writing that did not end
}

// JSONCopy is one of the two copies of a configuration file.
type JSONCopy struct {
	File
	Data []byte
	Tree any   // fastjson.Parse of Data; nil when Err is set
	Err  error // why it cannot be read: empty, no JSON, or the error of the disk
}

// Good is the copy that a broker takes: the file, else its backup, else nil.
func (j *JSONFile) Good() *JSONCopy {
	for _, c := range []*JSONCopy{j.Main, j.Backup} {
		if c != nil && c.Err == nil {
			return c
		}
	}
	return nil
}

// there reports whether one of the copies is a file.
func (j *JSONFile) there() bool {
	return slices.ContainsFunc([]*JSONCopy{j.Main, j.Backup}, func(c *JSONCopy) bool { return c != nil && !errors.Is(c.Err, ErrNoFile) })
}

// ErrEmptyFile says that a configuration file exists and holds nothing.
var ErrEmptyFile = errors.New("the file is empty")

// JSONNames are the configuration files there are, without .bak and .tmp, sorted: every name in config/ that ends in
// .json or whose backup does, and timermetrics and transactionMetrics.
func (d *Dir) JSONNames() ([]string, error) {
	entries, err := d.fs.ReadDir(d.Path(nameConfig))
	if vfs.Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list configuration: %w", err)
	}
	seen := map[string]bool{}
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".bak"), ".tmp")
		if seen[name] || (!strings.HasSuffix(name, ".json") && name != "timermetrics" && name != "transactionMetrics") {
			continue
		}
		seen[name] = true
		out = append(out, name)
	}
	return out, nil
}

// JSON reads a configuration file and its backup. That a copy is missing, cannot be parsed, or lies on a bad sector is no
// error of JSON; that it may not be read is.
func (d *Dir) JSON(name string) (*JSONFile, error) {
	j := &JSONFile{Name: name}
	var err error
	if j.Main, err = d.jsonCopy(path.Join(nameConfig, name)); err != nil {
		return nil, err
	}
	if j.Backup, err = d.jsonCopy(path.Join(nameConfig, name+".bak")); err != nil {
		return nil, err
	}
	_, j.Leftover, err = d.stat(path.Join(nameConfig, name+".tmp"))
	return j, err
}

func (d *Dir) jsonCopy(name string) (*JSONCopy, error) {
	st, ok, err := d.stat(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		if _, err := d.fs.Stat(d.Path(name)); err == nil {
			return &JSONCopy{File: File{Path: d.Path(name)}, Err: ErrNoFile}, nil
		}
		return nil, nil
	}
	c := &JSONCopy{File: st}
	b, ok, err := d.read(name, maxConfigFile)
	switch {
	case errors.Is(err, fs.ErrPermission): // that says nothing of the file
		return nil, err
	case err != nil:
		c.Err = err
	case !ok:
		return nil, nil
	case len(b) == 0:
		c.Err = ErrEmptyFile
	default:
		c.Data = b
		c.Tree, c.Err = fastjson.Parse(b)
	}
	return c, nil
}

// Checkpoint is the content of the file checkpoint; ok is false when there is none or it is too short.
func (d *Dir) Checkpoint() (c store.Checkpoint, ok bool, err error) {
	if _, there, err := d.stat(nameCheckpoint); err != nil || !there {
		return store.Checkpoint{}, false, err
	}
	return store.ReadCheckpoint(d.fs, d.root)
}
