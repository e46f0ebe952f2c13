package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/contexts"
	remoteclient "mqx/remoting/client"
)

// Keys come from a flag, a named context, the environment, or the current context
// of the cluster; and each from a variable, a file or a command.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("filed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := &contexts.File{APIVersion: contexts.APIVersion, Current: "here", Contexts: []contexts.Context{
		{Name: "here", NameServers: []string{"127.0.0.1:9876"}, AccessKey: "text:current", SecretKey: "env:CURRENT_SECRET"},
		{Name: "there", NameServers: []string{"10.0.0.1:9876"}, AccessKey: "text:there", SecretKey: contexts.Source("file:" + secret), SecurityToken: "cmd:echo token"},
	}}
	if err := file.Save(filepath.Join(dir, "mqx", "contexts.json")); err != nil {
		t.Fatal(err)
	}
	type keys = remoteclient.Credentials
	for name, c := range map[string]struct {
		env   map[string]string
		flags targetFlags
		named string
		want  *keys
		fails bool
	}{
		"current context":                  {env: map[string]string{"CURRENT_SECRET": "s"}, want: &keys{AccessKey: "current", SecretKey: "s"}},
		"its secret is not there":          {fails: true},
		"another cluster gets none of it":  {flags: targetFlags{namesrv: "10.9.9.9:1"}},
		"named context":                    {named: "there", want: &keys{AccessKey: "there", SecretKey: "filed", Token: "token"}},
		"environment over current context": {env: map[string]string{"MQX_ACCESS_KEY": "a", "MQX_SECRET_KEY_FILE": secret}, want: &keys{AccessKey: "a", SecretKey: "filed"}},
		"named context over environment":   {named: "there", env: map[string]string{"MQX_ACCESS_KEY": "a", "MQX_SECRET_KEY": "b"}, want: &keys{AccessKey: "there", SecretKey: "filed", Token: "token"}},
		"a command":                        {env: map[string]string{"MQX_ACCESS_KEY": "a", "MQX_SECRET_KEY_COMMAND": "echo said"}, want: &keys{AccessKey: "a", SecretKey: "said"}},
		"flags over all": {
			named: "there", env: map[string]string{"X": "x", "MQX_SECRET_KEY": "b"},
			flags: targetFlags{secrets: secretFlags{accessKey: sourceFlag{"text:flag"}, secretKey: sourceFlag{"env:X"}}},
			want:  &keys{AccessKey: "flag", SecretKey: "x", Token: "token"},
		},
		"half of a pair": {env: map[string]string{"MQX_ACCESS_KEY": "a"}, flags: targetFlags{namesrv: "10.9.9.9:1"}, fails: true},
	} {
		a := &app{global: globalFlags{context: c.named}, env: func(k string) string {
			if k == "XDG_CONFIG_HOME" {
				return dir
			}
			return c.env[k]
		}}
		r, err := a.resolve(&c.flags)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := r.credentials(t.Context(), a)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" && !c.fails {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err != nil && asFailure(err).Code != ExitUsage {
			t.Errorf("%s: exit code %d", name, asFailure(err).Code)
		}
	}
}
