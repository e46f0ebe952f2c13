// Package props reads and writes Java .properties text: the form of broker.conf
// and namesrv.conf. It keeps every line of a file, so that a change of one key
// leaves comments, order and all other keys as they are, and binds the values
// to Go structs by `conf` tags.
package props

import (
	"fmt"
	"os"
)

// Entry is one key of a file with its value and the line on which it starts.
type Entry struct {
	Key   string
	Value string
	Line  int // 1-based; 0 for an entry that did not come from a file
}

// File is a parsed .properties text. It is not safe for concurrent use.
type File struct {
	// Name is what errors call the file: usually its path.
	Name  string
	lines []logical
}

// logical is one logical line: an entry with its continuations, or a comment
// or blank line (key == "").
type logical struct {
	raw   string // as in the file, line ends included
	entry Entry
	isKey bool
}

// SyntaxError is a malformed escape or value, with the place where it stands.
type SyntaxError struct {
	File string
	Line int
	Key  string
	Text string
}

func (e *SyntaxError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
	}
	return fmt.Sprintf("%s:%d: key %q: %s", e.File, e.Line, e.Key, e.Text)
}

// Load reads and parses the file at path.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read configuration %q: %w", path, err)
	}
	return Parse(path, data)
}
