// Package journal remembers what mqx changed for the person who runs it, one small
// file a change in a directory of their own, so that it can be listed and taken
// back. It is bounded: the oldest entries go.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mqx/internal/userfile"
)

// Bounds of the journal.
const (
	maxEntries = 200
	maxEntry   = 4 << 20
)

// Entry is one change that was done.
type Entry struct {
	ID          string    `json:"id"`
	Time        time.Time `json:"time"`
	Context     string    `json:"context,omitempty"`
	NameServers []string  `json:"namesrv"`
	Clusters    []string  `json:"clusters,omitempty"`
	Kind        string    `json:"kind"` // what Done holds, for example topic
	Object      string    `json:"object"`
	Change      string    `json:"change"` // in words
	// Done is the change as the room that did it wrote it down.
	Done json.RawMessage `json:"done"`
	// Final is why the change cannot be taken back, "" when it can.
	Final string `json:"final,omitempty"`
	// Undone is when it was taken back, zero when it was not.
	Undone time.Time `json:"undone,omitzero"`
}

// Journal is a directory of entries. It is safe to share between processes: each
// entry is a file of its own, replaced as a whole.
type Journal struct{ dir string }

// Open names the journal of this user. It makes nothing. env is os.Getenv.
func Open(env func(string) string) (*Journal, error) {
	dir, err := userfile.StateDir(env)
	if err != nil {
		return nil, err
	}
	return &Journal{dir: filepath.Join(dir, "changes")}, nil
}

// NotFoundError says that no entry, or more than one, has an id that begins so.
type NotFoundError struct {
	ID    string
	Found int
}

// Error names the id.
func (e *NotFoundError) Error() string {
	if e.Found > 1 {
		return fmt.Sprintf("change %s is not unique: %d changes begin so", e.ID, e.Found)
	}
	return "change " + e.ID + " not found"
}

const idForm = "20060102T150405.000000000"

// NewID is the id of a change at a time.
func NewID(t time.Time) string {
	return strings.ReplaceAll(t.UTC().Format(idForm), ".", "")[:len("20060102T150405")+6]
}

// Add writes an entry and drops the oldest above the bound.
func (j *Journal) Add(e Entry) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot note change %q: %w", e.ID, err)
	}
	if len(data) > maxEntry {
		return fmt.Errorf("cannot note change %q: it has %d bytes, at most %d are kept", e.ID, len(data), maxEntry)
	}
	if err := userfile.Write(j.path(e.ID), append(data, '\n')); err != nil {
		return err
	}
	names, err := j.names()
	if err != nil {
		return err
	}
	for _, old := range names[:max(0, len(names)-maxEntries)] {
		if err := os.Remove(j.path(old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot drop change %q: %w", old, err)
		}
	}
	return nil
}

func (j *Journal) path(id string) string { return filepath.Join(j.dir, id+".json") }

// names are the ids, the oldest first.
func (j *Journal) names() ([]string, error) {
	files, err := os.ReadDir(j.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal of changes: %w", err)
	}
	var out []string
	for _, f := range files {
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok && !strings.HasPrefix(id, ".") {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out, nil
}

// List is all entries, the newest first. An entry that cannot be read is passed over
// and named in the error; the others are returned with it.
func (j *Journal) List() ([]Entry, error) {
	names, err := j.names()
	if err != nil {
		return nil, err
	}
	slices.Reverse(names)
	var out []Entry
	var errs []error
	for _, id := range names {
		e, err := j.read(id)
		switch {
		case errors.Is(err, os.ErrNotExist): // dropped meanwhile
		case err != nil:
			errs = append(errs, err)
		default:
			out = append(out, *e)
		}
	}
	return out, errors.Join(errs...)
}

func (j *Journal) read(id string) (*Entry, error) {
	data, err := userfile.Read(j.path(id), maxEntry+1)
	if err != nil {
		return nil, err
	}
	e := &Entry{}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("cannot read change %q: %w", j.path(id), err)
	}
	return e, nil
}

// Get is the entry whose id is, or alone begins with, the text given.
func (j *Journal) Get(id string) (*Entry, error) {
	names, err := j.names()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, n := range names {
		if n == id {
			found = []string{n}
			break
		}
		if id != "" && strings.HasPrefix(n, id) {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		return nil, &NotFoundError{ID: id, Found: len(found)}
	}
	return j.read(found[0])
}
