package nameserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/internal/props"
	"mqx/remoting"
)

func load(t *testing.T, text string, allow ...string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "namesrv.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadConfig(path, allow)
}

func TestLoadConfig(t *testing.T) {
	c, err := load(t, `
# a name server of Apache's
listenPort=9877
bindAddress=127.0.0.1
kvConfigPath=/tmp/kv.json
serverSelectorThreads=2
serverChannelMaxIdleTimeSeconds=60
scanNotActiveBrokerInterval=7000
waitSecondsForService=3
deleteTopicWithBrokerRegistration=true
serverWorkerThreads=16
serverSocketBacklog=1024
clientWorkerThreads=9
noSuchKey=1
`)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.ListenAddr() != "127.0.0.1:9877" || c.KVConfigPath != "/tmp/kv.json" || c.Loops != 2 || c.IdleTimeout != time.Minute ||
		c.ScanNotActiveBrokerInterval != 7*time.Second || c.WaitForService != 3*time.Second || !c.DeleteTopicWithBrokerRegistration {
		t.Errorf("%+v", c)
	}
	all := strings.Join(c.Warnings(), "\n")
	for _, want := range []string{
		`namesrv.conf:14: unknown key "noSuchKey" is ignored`,
		"namesrv.conf:11: serverWorkerThreads=16 has no effect",
		"namesrv.conf:13: clientWorkerThreads=9 has no effect",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "serverSocketBacklog") {
		t.Errorf("a key at Apache's default is warned of:\n%s", all)
	}
	if got := c.Values(); got["serverWorkerThreads"] != "16" || got["scanNotActiveBrokerInterval"] != "7000" || got["configStorePath"] != c.Source {
		t.Errorf("values: %v", got)
	}
}

func TestLoadConfigRefuses(t *testing.T) {
	for _, r := range refusals {
		_, err := load(t, "\n"+r.Key+"=true\n")
		var u *props.UnsupportedError
		if !errors.As(err, &u) || u.Line != 2 || u.Key != r.Key || !strings.Contains(err.Error(), "namesrv.conf:2:") {
			t.Errorf("%s: %v", r.Key, err)
		}
		c, err := load(t, r.Key+"=true\n", r.Key)
		if err != nil {
			t.Errorf("%s, allowed: %v", r.Key, err)
		}
		if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "--allow-unsupported") {
			t.Errorf("%s, allowed, warns %q", r.Key, w)
		}
		if _, err := load(t, r.Key+"=false\n"); err != nil {
			t.Errorf("%s=false: %v", r.Key, err)
		}
	}
	for _, text := range []string{"listenPort=98x6", "orderMessageEnable=maybe", "serverSocketBacklog=many", "useTLS=perhaps"} {
		_, err := load(t, "# first\n"+text+"\n")
		var s *props.SyntaxError
		if !errors.As(err, &s) || s.Line != 2 {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "missing"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.ListenPort = 70000 }, "listenPort: must be 0 to 65535, got 70000"},
		{func(c *Config) { c.DefaultThreadPoolNums = 0 }, "defaultThreadPoolNums: must be at least 1, got 0"},
		{func(c *Config) { c.KVConfigPath = "" }, "kvConfigPath: must not be empty"},
		{func(c *Config) { c.SerializeType = "XML" }, "rocketmq.serialize.type"},
		{func(c *Config) { c.TLS.Mode = "sometimes" }, "sometimes"},
		{func(c *Config) { c.ScanNotActiveBrokerInterval = time.Millisecond }, "scanNotActiveBrokerInterval"},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: New accepts it", c.want)
		}
	}
}

func TestSetListen(t *testing.T) {
	for addr, want := range map[string]string{
		":9999": "0.0.0.0:9999", "9999": "0.0.0.0:9999", "127.0.0.1:0": "127.0.0.1:0", "[::1]:9876": "[::1]:9876", "localhost:1": "localhost:1",
	} {
		c := DefaultConfig()
		if err := c.SetListen(addr); err != nil || c.ListenAddr() != want {
			t.Errorf("%q: %s %v, want %s", addr, c.ListenAddr(), err, want)
		}
	}
	for _, addr := range []string{"", "host", "1.2.3.4:x", ":70000", "-1", "::1:9876"} {
		c := DefaultConfig()
		if err := c.SetListen(addr); err == nil {
			t.Errorf("%q: accepted as %s", addr, c.ListenAddr())
		}
	}
}

func TestUpdateConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "namesrv.conf")
	const before = "# mine\nenableTopicList = true # no comment\n# end\n"
	if err := os.WriteFile(path, []byte(strings.Replace(before, " # no comment", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(c *Config) { c.Source = path })
	p := dial(t, s)
	update := func(text string) *remoting.Command {
		req := remoting.NewRequest(remoting.ReqUpdateNamesrvConfig, nil)
		req.Body = []byte(text)
		return req
	}
	resp := p.ok(update("enableTopicList=false\nlistenPort=1234\nnobodyKnows=1\n")) // N116 N117
	if want := "active now: enableTopicList; after a restart: listenPort; written to " + path; resp.Remark != want {
		t.Errorf("remark %q, want %q", resp.Remark, want)
	}
	p.refused(remoting.NewRequest(remoting.ReqGetTopicsByCluster, &remoting.GetTopicsByClusterHeader{Cluster: "c"}), remoting.RespNoPermission, "disable")
	got, err := os.ReadFile(path)
	if want := "# mine\nenableTopicList = false\n# end\nlistenPort=1234\n"; err != nil || string(got) != want {
		t.Errorf("file %q %v, want %q", got, err, want)
	}
	if text := string(p.ok(remoting.NewRequest(remoting.ReqGetNamesrvConfig, nil)).Body); !strings.Contains(text, "\nenableTopicList=false\n") {
		t.Errorf("configuration shown:\n%s", text)
	}
	for text, want := range map[string]struct {
		code   int32
		remark string
	}{
		"kvConfigPath=/x":                {remoting.RespNoPermission, "Can not update config in black list."},
		"configStorePath=/x":             {remoting.RespNoPermission, "black list"},
		"configBlackList=":               {remoting.RespNoPermission, "black list"},
		"rocketmqHome=/x":                {remoting.RespNoPermission, "black list"},
		"enableTopicList=maybe":          {remoting.RespSystemError, "neither true nor false"},
		"enableControllerInNamesrv=true": {remoting.RespSystemError, "not supported"},
		"defaultThreadPoolNums=0":        {remoting.RespSystemError, "must be at least 1"},
		"serverSocketBacklog=x":          {remoting.RespSystemError, "serverSocketBacklog"},
	} {
		p.refused(update("enableAllTopicList=false\n"+text+"\n"), want.code, want.remark)
	}
	p.ok(remoting.NewRequest(remoting.ReqGetAllTopicListFromNameServer, nil)) // all or nothing
	if again, err := os.ReadFile(path); err != nil || string(again) != string(got) {
		t.Errorf("a refused change was written: %q %v", again, err)
	}
	p.ok(update(""))
}

func TestExplain(t *testing.T) {
	s := startServer(t, nil)
	lines := s.Explain()
	if len(lines) != 4 || lines[0] != "no configuration file: defaults and flags" || lines[1] != "listens on "+s.Addr().String() ||
		!strings.HasPrefix(lines[2], "key-value table /") || !strings.HasPrefix(lines[3], "TLS permissive, self-signed") {
		t.Errorf("%q", lines)
	}
	cfg := DefaultConfig()
	cfg.Source, cfg.BindAddress = "n.conf", "8.8.8.8"
	lines = cfg.Explain()
	if !strings.HasPrefix(lines[0], "configuration /") || lines[4] != "warning: listens without authentication on a public address: 8.8.8.8" {
		t.Errorf("%q", lines)
	}
}
