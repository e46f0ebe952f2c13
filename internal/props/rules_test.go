package props

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var testRules = Rules{
	Refusals: Refusals{{Key: "secure", Promises: IsTrue, Why: "there is no lock"}},
	Inert: func(key string) (Inert, bool) {
		k, ok := map[string]Inert{"threads": {"int", "4", "there are none"}, "share": {"double", "1", "nobody asks"}}[key]
		return k, ok
	},
	Hint: func(key string) string { return " (" + key + "?)" },
	Mark: "note: ",
}

func rulesBind(t *testing.T, text string, allow ...string) (Loaded, error) {
	t.Helper()
	f, err := Parse("x.conf", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return testRules.Bind(f, allow, &target{})
}

func TestRulesBind(t *testing.T) {
	got, err := rulesBind(t, "big=1\nbig=2\nsecure=true\nthreads=5\nshare=1\nodd=x\n", "secure")
	if err != nil {
		t.Fatal(err)
	}
	want := Loaded{
		Warnings: []string{
			`warning: x.conf:6: unknown key "odd" is ignored (odd?)`,
			"x.conf:4: threads=5 has no effect: there are none",
			"note: x.conf:3: secure=true is not supported and was let through by --allow-unsupported",
		},
		Remarks: []string{`note: x.conf:1: key "big" is given again further down, the last one counts`},
		Values:  map[string]string{"secure": "true", "threads": "5", "share": "1", "odd": "x"},
		Set:     map[string]bool{"big": true, "secure": true, "threads": true, "share": true, "odd": true},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Loaded{})); d != "" {
		t.Error(d)
	}
}

func TestRulesRefuse(t *testing.T) {
	_, err := rulesBind(t, "\nsecure= TRUE\n")
	if _, ok := errors.AsType[*UnsupportedError](err); !ok || err.Error() != "x.conf:2: secure=TRUE is not supported: there is no lock (--allow-unsupported secure starts without it)" {
		t.Errorf("%v", err)
	}
	for line, want := range map[string]string{
		"threads=many": `x.conf:1: key "threads": "many" is no int`,
		"share=x":      `x.conf:1: key "share": "x" is no double`,
		"on=perhaps":   `x.conf:1: key "on": "perhaps" is neither true nor false`,
	} {
		_, err := rulesBind(t, line)
		if _, ok := errors.AsType[*SyntaxError](err); !ok || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	if got := (&UnsupportedError{File: "dir", Key: "k", Val: "v"}).What(); got != "dir: k=v is not supported" {
		t.Error(got)
	}
	if got := (&UnsupportedError{Key: "k", Val: "v"}).What(); got != "k=v is not supported" {
		t.Error(got)
	}
}

func TestBindFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tls.properties")
	var l Loaded
	var to target
	if bound, err := l.BindFile(path, true, "", &to); bound || err != nil {
		t.Errorf("an optional file is missing: %v %v", bound, err)
	}
	if _, err := l.BindFile(path, false, "", &to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is missing: %v", err)
	}
	if err := os.WriteFile(path, []byte("big=7\nmine=1\ntheirs.x=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if bound, err := l.BindFile(path, true, "theirs.", &to); !bound || err != nil || to.Big != 7 {
		t.Errorf("%v %v %+v", bound, err, to)
	}
	if d := cmp.Diff([]string{path + `:2: unknown key "mine" is ignored`}, l.Remarks); d != "" {
		t.Error(d)
	}
	if got := string(Text(map[string]string{"b": "2", "a": "1"})); got != "a=1\nb=2\n" {
		t.Errorf("%q", got)
	}
}

func TestLocate(t *testing.T) {
	l, err := rulesBind(t, "big=1\nshare=1\n\nbig=2\n")
	if err != nil {
		t.Fatal(err)
	}
	bad := errors.Join(errors.New("big: must be less"), errors.New("small: must be more"), errors.Join(errors.New("share: odd")))
	if got, want := l.Locate(bad).Error(), "x.conf:4: big: must be less\nsmall: must be more\nx.conf:2: share: odd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if l.Locate(nil) != nil || (&Loaded{}).Locate(bad).Error() != bad.Error() {
		t.Error("nothing to locate")
	}
}
