package props

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// DefaultTLSFile is where Apache looks when tls.config.file is not given.
const DefaultTLSFile = "/etc/rocketmq/tls.properties"

// Inert is a key that Apache reads and that has no effect here.
type Inert struct {
	Kind    string // Java type: int, long, double, float, boolean or String
	Default string // Apache's
	Why     string // it has no effect
}

// Rules say how a server takes the keys of its configuration file beyond those
// that its fields bind.
type Rules struct {
	Refusals Refusals
	// Inert finds a key without effect.
	Inert func(key string) (Inert, bool)
	// Hint is what the warning of an unknown key ends in; nil for nothing.
	Hint func(key string) string
	// Mark stands before the lines about keys given twice or let through.
	Mark string
}

// Loaded is what a file said beyond the bound fields. Copies share the maps,
// which are not changed after loading.
type Loaded struct {
	// Warnings are lines about keys that are unknown, have no effect or were
	// let through by --allow-unsupported.
	Warnings []string
	// Remarks are lines on values taken as they stand.
	Remarks []string
	// Values are those of keys that bind to nothing.
	Values map[string]string
	// Set are all keys the file names.
	Set map[string]bool

	file  string
	lines map[string]int // where the value of a key that counts stands
}

// Locate puts file and line in front of each error that err joins, for those
// whose text begins with a key of the file and a colon, as the errors of a
// Validate do.
func (l *Loaded) Locate(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, l.Locate(e))
		}
		return errors.Join(out...)
	}
	key, _, _ := strings.Cut(err.Error(), ":")
	if line := l.lines[key]; line > 0 {
		return fmt.Errorf("%s:%d: %w", l.file, line, err)
	}
	return err
}

// Bind binds the file to the targets and judges all other keys. A malformed
// value, also of a key without effect, is a *SyntaxError; a key that promises
// what is not served, unless allow holds its name, is an *UnsupportedError.
func (r *Rules) Bind(f *File, allow []string, targets ...any) (Loaded, error) {
	unbound, err := Bind(f, targets...)
	if err != nil {
		return Loaded{}, err
	}
	l := Loaded{Values: map[string]string{}, Set: map[string]bool{}, file: f.Name, lines: map[string]int{}}
	allowed := map[string]bool{}
	var through []string
	for _, e := range f.Entries() {
		l.Set[e.Key], l.lines[e.Key] = true, e.Line
		refusal := r.Refusals.Find(e.Key, e.Value)
		if refusal == nil {
			continue
		}
		if !slices.Contains(allow, e.Key) {
			return Loaded{}, &UnsupportedError{File: f.Name, Line: e.Line, Key: e.Key, Val: e.Value, Why: refusal.Why}
		}
		allowed[e.Key] = true
		through = append(through, fmt.Sprintf("%s%s:%d: %s=%s is not supported and was let through by --allow-unsupported", r.Mark, f.Name, e.Line, e.Key, e.Value))
	}
	for _, e := range f.Overridden() {
		l.Remarks = append(l.Remarks, fmt.Sprintf("%s%s:%d: key %q is given again further down, the last one counts", r.Mark, f.Name, e.Line, e.Key))
	}
	if err := r.sort(&l, f, unbound, allowed); err != nil {
		return Loaded{}, err
	}
	l.Warnings = append(l.Warnings, through...)
	return l, nil
}

// sort tells keys without effect from unknown ones; allowed ones are spoken of elsewhere.
func (r *Rules) sort(l *Loaded, f *File, unbound []Entry, allowed map[string]bool) error {
	var noEffect []string
	for _, e := range unbound {
		k, known := r.Inert(e.Key)
		if known {
			if err := CheckKind(f.Name, e, k.Kind); err != nil {
				return err
			}
		}
		l.Values[e.Key] = e.Value
		switch {
		case allowed[e.Key]:
		case !known:
			hint := ""
			if r.Hint != nil {
				hint = r.Hint(e.Key)
			}
			l.Warnings = append(l.Warnings, "warning: "+UnknownText(f, e)+hint)
		case e.Value != k.Default:
			noEffect = append(noEffect, fmt.Sprintf("%s:%d: %s=%s has no effect: %s", f.Name, e.Line, e.Key, e.Value, k.Why))
		}
	}
	l.Warnings = append(l.Warnings, noEffect...)
	return nil
}

// BindFile binds the further file at path to target, with a remark on each key
// that nothing binds, but for those that begin with foreign ("": no exception).
// An optional file may be missing; bound reports whether there was one.
func (l *Loaded) BindFile(path string, optional bool, foreign string, target any) (bound bool, err error) {
	f, err := Load(path)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	unbound, err := Bind(f, target)
	if err != nil {
		return false, err
	}
	for _, e := range unbound {
		if foreign == "" || !strings.HasPrefix(e.Key, foreign) {
			l.Remarks = append(l.Remarks, UnknownText(f, e))
		}
	}
	return true, nil
}

// CheckKind refuses a malformed value of a key without effect, as of any other:
// a *SyntaxError. Kind is a Java type; those of text take every value.
func CheckKind(file string, e Entry, kind string) error {
	v := strings.TrimSpace(e.Value)
	var err error
	switch kind {
	case "int":
		_, err = strconv.ParseInt(v, 10, 32)
	case "long":
		_, err = strconv.ParseInt(v, 10, 64)
	case "double", "float":
		_, err = strconv.ParseFloat(v, 64)
	case "boolean":
		if !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
			err = errors.New("neither true nor false")
		}
	}
	if err != nil {
		return &SyntaxError{File: file, Line: e.Line, Key: e.Key, Text: fmt.Sprintf("%q is no %s", e.Value, kind)}
	}
	return nil
}

// Text is values as sorted key=value lines.
func Text(values map[string]string) []byte {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(k + "=" + values[k] + "\n")
	}
	return []byte(b.String())
}
