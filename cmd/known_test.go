package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqx/internal/render"
	"mqx/remoting"
)

// N118: names are printed whole however narrow the terminal is, every row ends its line, and
// rows of several brokers say which broker they are of, without -o wide.
func TestNamesAreNeverCut(t *testing.T) {
	long, seen := strings.Repeat("n", 120), 0
	for _, s := range allSchemas() {
		broker := slices.IndexFunc(s.Fields, func(f render.Field) bool { return f.Name == "broker" })
		name := slices.IndexFunc(s.Fields, func(f render.Field) bool { return f.Name == s.Name })
		if broker < 0 || name < 0 || name == broker || s.Fields[name].Kind != render.Text || s.Fields[name].Wide {
			continue
		}
		seen++
		for _, o := range []render.Options{{Form: render.FormTable}, {Form: render.FormTable, TTY: true, Width: 80}, {Form: render.FormTable, TTY: true, Width: 200}} {
			var b bytes.Buffer
			w, err := render.New(&b, s, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{"broker-a", "broker-b"} {
				row := make([]any, len(s.Fields))
				row[broker], row[name] = at, long
				if err := w.Row(row...); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			if strings.Count(text, long) != 2 || !strings.HasSuffix(text, "\n") {
				t.Errorf("%s at width %d: a name is cut:\n%s", s.Kind, o.Width, text)
			}
			if !s.Fields[broker].Wide && (!strings.Contains(text, "broker-a") || !strings.Contains(text, "broker-b")) {
				t.Errorf("%s at width %d: the rows of two brokers look the same:\n%s", s.Kind, o.Width, text)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d kinds of records were looked at", seen)
	}
}

// N111: the keys of Apache's tool come from tools.yml where it is there; without it, and
// with another administrator's key, commands go on with what they have.
func TestToolsKeys(t *testing.T) {
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"ROCKETMQ_HOME": home}[name] }
	if c, err := toolsKeys(env); c != nil || err != nil {
		t.Errorf("without the file: %v, %v", c, err)
	}
	if err := os.Mkdir(filepath.Join(home, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "conf", "tools.yml"), []byte("accessKey: renamed\nsecretKey: \"s 1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := toolsKeys(env)
	if err != nil || c == nil || c.AccessKey != "text:renamed" || c.SecretKey != "text:s 1" {
		t.Errorf("with another key: %+v, %v", c, err)
	}
}

// N111, N123: a refusal is exit code 4 and names the key that requests were signed with, or
// says that there was none; never the secret.
func TestRefusalNamesTheKey(t *testing.T) {
	denied := fmt.Errorf("cannot list topics: %w", &remoting.ResponseError{Code: remoting.RespNoPermission, Remark: "no access"})
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"signed":     {map[string]string{"MQX_ACCESS_KEY": "ops", "MQX_SECRET_KEY": "s3cret"}, `requests are signed with access key "ops" (from MQX_ACCESS_KEY)`},
		"not signed": {nil, "requests are not signed, no access key is given"},
	} {
		dir := t.TempDir()
		a := &app{env: func(k string) string {
			if k == "XDG_CONFIG_HOME" {
				return dir
			}
			return c.env[k]
		}}
		if _, err := a.connection(t.Context(), &targetFlags{namesrv: "127.0.0.1:1"}); err != nil {
			t.Fatal(err)
		}
		f := a.keyNamed(asFailure(denied))
		if f.Code != ExitDenied || f.Why != c.want || f.Try == "" || strings.Contains(fmt.Sprint(f.Err, f.Why, f.Try), "s3cret") {
			t.Errorf("%s: %d %v %q %q", name, f.Code, f.Err, f.Why, f.Try)
		}
		if f := a.keyNamed(asFailure(errors.New("another"))); f.Why != "" {
			t.Errorf("another error: %q", f.Why)
		}
	}
}
