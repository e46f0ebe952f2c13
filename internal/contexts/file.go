// Package contexts keeps what a person says about the clusters they work with:
// name servers, credentials, store directory, and the marks that make a cluster
// read-only or protected. It is one JSON file of mode 0600 in the user's
// configuration directory; secrets stand in it as the place where they are found.
package contexts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mqx/internal/sorted"
	"mqx/internal/userfile"
)

// APIVersion is the version of the file.
const APIVersion = "mqx/v1"

// maxFile bounds what is read as a contexts file.
const maxFile = 1 << 20

// File holds all contexts. It is not safe for concurrent use.
type File struct {
	APIVersion string `json:"apiVersion"`
	// Current is the context of commands that name none; "" is none.
	Current  string    `json:"current,omitempty"`
	Contexts []Context `json:"contexts"`
}

// Context is one cluster as a person works with it.
type Context struct {
	Name        string   `json:"name"`
	NameServers []string `json:"namesrv,omitempty"` // host:port
	AccessKey   Source   `json:"accessKey,omitempty"`
	SecretKey   Source   `json:"secretKey,omitempty"`
	// SecurityToken belongs to keys that are valid for a while only.
	SecurityToken Source `json:"securityToken,omitempty"`
	Store         string `json:"store,omitempty"` // store directory on this machine
	TLS           *TLS   `json:"tls,omitempty"`
	// Map are addresses that stand for others which cannot be reached from this
	// machine, as FROM=TO.
	Map []string `json:"map,omitempty"`
	// ReadOnly refuses every change of the cluster, Protected asks for the name of
	// what is changed. They hold for the cluster, however it is reached: see Marks.
	ReadOnly  bool `json:"readOnly,omitempty"`
	Protected bool `json:"protected,omitempty"`
}

// TLS says how connections are encrypted; files are paths on this machine.
type TLS struct {
	CA          string `json:"ca,omitempty"`
	Cert        string `json:"cert,omitempty"`
	Key         string `json:"key,omitempty"`
	KeyPassword Source `json:"keyPassword,omitempty"`
}

// Path is where the file of this user is. env is os.Getenv.
func Path(env func(string) string) (string, error) {
	dir, err := userfile.ConfigDir(env)
	return filepath.Join(dir, "contexts.json"), err
}

// FileError says what is wrong with a contexts file, and in which line, 0 when the
// file as a whole is meant.
type FileError struct {
	Path string
	Line int
	Err  error
}

// Error names the file and the line.
func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("cannot use contexts file %q: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("cannot use contexts file %q: line %d: %v", e.Path, e.Line, e.Err)
}

// Unwrap is the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Load reads the file at path; a missing one has no contexts.
func Load(path string) (*File, error) {
	data, err := userfile.Read(path, maxFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &File{APIVersion: APIVersion}, nil
	case err != nil:
		return nil, &FileError{Path: path, Err: err}
	}
	f, err := Parse(data)
	if bad, ok := errors.AsType[*FileError](err); ok {
		bad.Path = path
	}
	return f, err
}

// Parse reads the text of a file. Its error is a *FileError without a path.
func Parse(data []byte) (*File, error) {
	f := &File{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, &FileError{Line: lineOf(data, err), Err: err}
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		at := len(data) - len(bytes.TrimLeft(data[d.InputOffset():], " \t\r\n"))
		return nil, &FileError{Line: 1 + bytes.Count(data[:at], []byte("\n")), Err: errors.New("something stands behind the contexts")}
	}
	if err := f.check(); err != nil {
		return nil, &FileError{Err: err}
	}
	return f, nil
}

// lineOf is the line that a JSON error speaks of, 0 when it does not say.
func lineOf(data []byte, err error) int {
	at := int64(-1)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = e.Offset
	}
	if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok {
		at = int64(bytes.Index(data, []byte(field)))
	}
	if at < 0 || at > int64(len(data)) {
		return 0
	}
	return 1 + bytes.Count(data[:at], []byte("\n"))
}

func (f *File) check() error {
	if f.APIVersion != APIVersion {
		return fmt.Errorf("apiVersion is %q, this mqx knows %q", f.APIVersion, APIVersion)
	}
	seen := map[string]bool{}
	for i := range f.Contexts {
		c := &f.Contexts[i]
		if seen[c.Name] {
			return fmt.Errorf("context %q comes twice", c.Name)
		}
		seen[c.Name] = true
		if err := c.Check(); err != nil {
			return err
		}
	}
	if f.Current != "" && !seen[f.Current] {
		return fmt.Errorf("the current context %q is not there", f.Current)
	}
	return nil
}

// nameForm is made when it is asked for: not every start of mqx has to wait for it.
var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })

// CheckName says whether a text can name a context.
func CheckName(name string) error {
	if !nameForm().MatchString(name) {
		return fmt.Errorf("cannot use context name %q: letters, digits, dots, dashes and underscores, 1 to 64 of them", name)
	}
	return nil
}

// Check says whether a context can be used. Addresses are checked by who dials them.
func (c *Context) Check() error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	sources := []Source{c.AccessKey, c.SecretKey, c.SecurityToken}
	if c.TLS != nil {
		sources = append(sources, c.TLS.KeyPassword)
	}
	for _, s := range sources {
		if s == "" {
			continue
		}
		if _, err := ParseSource(string(s)); err != nil {
			return fmt.Errorf("cannot use a secret of context %q: %w", c.Name, err)
		}
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return fmt.Errorf("cannot use context %q: an access key and a secret key belong together", c.Name)
	}
	return nil
}

// Save writes the file at path.
func (f *File) Save(path string) error {
	if err := f.check(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write contexts: %w", err)
	}
	return userfile.Write(path, append(data, '\n'))
}

// Get is the context of that name, nil when there is none. It is part of f.
func (f *File) Get(name string) *Context {
	for i := range f.Contexts {
		if f.Contexts[i].Name == name {
			return &f.Contexts[i]
		}
	}
	return nil
}

// Names are the names of all contexts, sorted.
func (f *File) Names() []string {
	names := make([]string, len(f.Contexts))
	for i := range f.Contexts {
		names[i] = f.Contexts[i].Name
	}
	slices.Sort(names)
	return names
}

// Put adds a context or replaces the one of its name.
func (f *File) Put(c Context) {
	if old := f.Get(c.Name); old != nil {
		*old = c
		return
	}
	f.Contexts = append(f.Contexts, c)
	sorted.By(f.Contexts, func(a, b Context) int { return strings.Compare(a.Name, b.Name) })
}

// Remove takes a context out; it reports whether it was there.
func (f *File) Remove(name string) bool {
	n := len(f.Contexts)
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
	return len(f.Contexts) < n
}
