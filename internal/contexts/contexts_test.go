package contexts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestFileRoundTrip(t *testing.T) {
	dir := t.TempDir()
	path, err := Path(env(map[string]string{"XDG_CONFIG_HOME": dir}))
	if err != nil || path != filepath.Join(dir, "mqx", "contexts.json") {
		t.Fatalf("path %q, %v", path, err)
	}
	f, err := Load(path)
	if err != nil || len(f.Contexts) != 0 {
		t.Fatalf("a missing file: %+v, %v", f, err)
	}
	f.Put(Context{Name: "b", NameServers: []string{"10.0.0.1:9876"}, AccessKey: "text:a", SecretKey: "env:S", Protected: true, TLS: &TLS{CA: "ca.pem"}})
	f.Put(Context{Name: "a", Store: "/srv"})
	f.Current = "b"
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again); diff != "" {
		t.Errorf("(-saved +loaded):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file: %v, %v", info.Mode(), err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, again.Names()); diff != "" {
		t.Error(diff)
	}
	if !again.Remove("b") || again.Remove("b") || again.Current != "" {
		t.Errorf("after removing: %+v", again)
	}
}

func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "EOF",
		"{\n\"apiVersion\" \"x\"}":              "line 2: ",
		`{"apiVersion":"mqx/v9"}`:               `this mqx knows "mqx/v1"`,
		"{\n\n\"contexts\":7}":                  "line 3: ",
		"{\"apiVersion\":\"mqx/v1\",\n\"x\":1}": "line 2: ",
		`{"apiVersion":"mqx/v1","current":"x"}`: "is not there",
		"{\"apiVersion\":\"mqx/v1\"}\n\n{\"contexts\":[]}":                                        "line 3: something stands behind",
		`{"apiVersion":"mqx/v1","contexts":[{"name":"a"},{"name":"a"}]}`:                          "comes twice",
		`{"apiVersion":"mqx/v1","contexts":[{"name":"a b"}]}`:                                     "cannot use context name",
		`{"apiVersion":"mqx/v1","contexts":[{"name":"a","accessKey":"env:A"}]}`:                   "belong together",
		`{"apiVersion":"mqx/v1","contexts":[{"name":"a","accessKey":"A","secretKey":"hunter2"}]}`: "cannot use a secret",
	} {
		f, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %+v, %v; want %q", text, f, err, want)
		}
		if _, ok := errors.AsType[*FileError](err); !ok {
			t.Errorf("%s: %T is no *FileError", text, err)
		}
	}
}

func TestSources(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte("from file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	values := env(map[string]string{"S": "from env", "HOME": dir})
	for text, want := range map[string]string{
		"env:S": "from env", "file:" + file: "from file", "file:~/secret": "from file", "cmd:echo from cmd": "from cmd", "text:x:y": "x:y",
	} {
		s, err := ParseSource(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := s.Read(t.Context(), values); err != nil || got != want {
			t.Errorf("%s gives %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "hunter2", "env:", "vault:x", "env"} {
		if s, err := ParseSource(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q is taken as %q (%v)", text, s, err)
		}
	}
	for text, want := range map[Source]string{
		"env:NONE": "there is none", "file:" + Source(dir) + "/none": "no such file", "cmd:echo no luck >&2; exit 3": "exit status 3: no luck", "cmd:true": "there is none",
	} {
		if got, err := text.Read(t.Context(), values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %q, %v; want %q", text, got, err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Source("cmd:sleep 60").Read(ended, values); err == nil {
		t.Error("a command outlives its context")
	}
	if got := Source("text:hunter2").String(); got != "text:(hidden)" {
		t.Errorf("shown as %q", got)
	}
}

func TestMarks(t *testing.T) {
	f := &File{Contexts: []Context{
		{Name: "plain", NameServers: []string{"10.0.0.1:9876"}},
		{Name: "prod", NameServers: []string{"10.0.0.1:9876", "10.0.0.2:9876"}, Protected: true},
		{Name: "six", NameServers: []string{"[2001:db8::1]:9876"}, ReadOnly: true},
		{Name: "named", NameServers: []string{"NS.example.com:9876"}, ReadOnly: true},
	}}
	hosts := map[string][]string{"ns.example.com": {"10.0.0.3"}, "alias": {"10.0.0.2", "10.9.9.9"}}
	resolve := func(host string) []string { return hosts[host] }
	for addrs, want := range map[string]Marks{
		"10.0.0.1:9876":               {Protected: "prod", Contexts: []string{"plain", "prod"}},
		"10.7.7.7:9876,10.0.0.2:9876": {Protected: "prod", Contexts: []string{"prod"}},
		"alias:9876":                  {Protected: "prod", Contexts: []string{"prod"}},
		"alias:9877":                  {},
		"10.0.0.3:9876":               {ReadOnly: "named", Contexts: []string{"named"}},
		"ns.EXAMPLE.com:9876":         {ReadOnly: "named", Contexts: []string{"named"}},
		"[2001:DB8:0:0::1]:9876":      {ReadOnly: "six", Contexts: []string{"six"}},
		"unknown:9876,10.0.0.4:9876":  {},
	} {
		if diff := cmp.Diff(want, f.Marks(strings.Split(addrs, ","), resolve)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", addrs, diff)
		}
	}
	// Nobody is asked for names while nothing is marked.
	none := &File{Contexts: []Context{{Name: "a", NameServers: []string{"host:1"}}}}
	none.Marks([]string{"other:1"}, func(string) []string { t.Error("a name was looked up"); return nil })
}

func TestShare(t *testing.T) {
	hosts := map[string][]string{"localhost": {"127.0.0.1", "::1"}, "ns": {"10.0.0.3"}}
	resolve := func(host string) []string { return hosts[host] }
	for _, c := range []struct {
		mine, theirs string
		resolve      func(string) []string
		want         bool
	}{
		{"localhost:9876", "127.0.0.1:9876", resolve, true},
		{"localhost:9876", "[::1]:9876", resolve, true},
		{"localhost:9876", "LocalHost:9876", nil, true},
		{"localhost:9876", "127.0.0.1:9876", nil, false},
		{"[0:0:0:0:0:0:0:1]:9876", "[::1]:9876", nil, true},
		{"[::ffff:10.0.0.3]:9876", "ns:9876", resolve, true},
		{"10.0.0.1:9876,ns:9876", "10.0.0.3:9876", resolve, true},
		{"ns:9876", "10.0.0.3:9877", resolve, false},
		{"nobody:9876", "127.0.0.1:9876", resolve, false},
	} {
		if got := Share(strings.Split(c.mine, ","), []string{c.theirs}, c.resolve); got != c.want {
			t.Errorf("%s and %s: %v", c.mine, c.theirs, got)
		}
	}
}
