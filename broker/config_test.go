package broker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/internal/props"
)

func load(t *testing.T, text string, allow ...string) (Config, error) {
	t.Helper()
	f, err := props.Parse("broker.conf", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return configFrom(f, allow)
}

// Every key of Apache is either bound by a field or says why it has no effect.
func TestEveryApacheKeyIsAccountedFor(t *testing.T) {
	c := DefaultConfig()
	bound := map[string]bool{}
	for _, f := range props.Fields(&c) {
		bound[f.Key] = true
	}
	broker, store := 0, 0
	for _, k := range apacheKeys() {
		switch k.Origin {
		case "broker":
			broker++
		case "store":
			store++
		}
		switch {
		case bound[k.Key] && k.Reason != "":
			t.Errorf("%s is bound and yet said to have no effect (%s)", k.Key, k.Reason)
		case !bound[k.Key] && k.Reason == "":
			t.Errorf("%s is not bound and says no reason", k.Key)
		case k.Reason != "" && noEffectReasons[k.Reason] == "":
			t.Errorf("%s: reason %q has no text", k.Key, k.Reason)
		}
	}
	if broker+store != 462 {
		t.Errorf("%d keys of BrokerConfig and %d of MessageStoreConfig, want 462 together", broker, store)
	}
	for name := range noEffectReasons {
		if !slices.ContainsFunc(slices.Collect(mapsValues(apacheKeys())), func(k apacheKey) bool { return k.Reason == name }) {
			t.Errorf("reason %q belongs to no key", name)
		}
	}
}

func mapsValues[K comparable, V any](m map[K]V) func(func(V) bool) {
	return func(yield func(V) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// The defaults of bound keys are Apache's.
func TestDefaultsAreApaches(t *testing.T) {
	c := DefaultConfig()
	c.ListenPort = 0
	skip := map[string]bool{ // depend on the machine or are presets of Apache's start code
		"listenPort": true, "brokerName": true, "brokerIP1": true, "brokerIP2": true, "storePathRootDir": true, "haListenPort": true,
		"serverSelectorThreads": true,
	}
	for _, f := range props.Fields(&c) {
		k, ok := apacheKeys()[f.Key]
		if !ok || skip[f.Key] {
			continue
		}
		want := defaultValue(k)
		if k.Default == "min(32,CPU)" || k.Default == "8+CPU" {
			continue
		}
		if got := f.String(); got != want {
			t.Errorf("%s: default %q, Apache's is %q", f.Key, got, want)
		}
	}
}

// refusedValues holds, for each row of the refusals, a value that stops the
// start and one that does not.
var refusedValues = map[string][2]string{
	"duplicationEnable":                  {"true", "false"},
	"enableControllerMode":               {"true", "false"},
	"enableDLegerCommitLog":              {"TRUE", "false"},
	"syncMasterFlushOffsetWhenStartup":   {"true", "false"},
	"enableRemoteEscape":                 {"true", "false"},
	"lockInStrictMode":                   {"true", "false"},
	"disableConsumeIfConsumerReadSlowly": {"true", "false"},
	"socksProxyConfig":                   {`{"10.0.0.0/8":{"addr":"proxy:1080"}}`, "{ }"},
	"disappearTimeAfterStart":            {"60000", "-1"},
	"aclEnable":                          {"true", "false"},
	"authenticationEnabled":              {"true", "false"},
	"authorizationEnabled":               {"true", "false"},
	"migrateAuthFromV1Enabled":           {"true", "false"},
	"metricsExporterType":                {"LOG", "PROM"},
	"storeType":                          {"defaultRocksDB", "default"},
	"configManagerVersion":               {"v2", "v1"},
	"useSingleRocksDBForAllConfigs":      {"true", "false"},
	"messageStorePlugIn":                 {"org.example.Store", ""},
	"storePathCommitLog":                 {"/a,/b", "/a"},
	"readOnlyCommitLogStorePaths":        {"/a", ""},
	"rocksdbCQDoubleWriteEnable":         {"true", "false"},
	"transRocksDBEnable":                 {"true", "false"},
	"timerRocksDBEnable":                 {"true", "false"},
	"indexRocksDBEnable":                 {"true", "false"},
	"popConsumerKVServiceInit":           {"true", "false"},
	"popConsumerKVServiceEnable":         {"true", "false"},
}

// What is promised by a key and not kept here stops the start: enableRemoteEscape too, whose acting master sent what was due to a
// broker that was dead (r#7923).
func TestRefusals(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.Key, func(t *testing.T) {
			v, ok := refusedValues[r.Key]
			if !ok {
				t.Fatal("this row has no test")
			}
			_, err := load(t, "# head\n"+r.Key+"="+v[0]+"\n")
			var ue *props.UnsupportedError
			if !errors.As(err, &ue) || ue.Line != 2 || ue.Key != r.Key || !strings.HasPrefix(err.Error(), "broker.conf:2: "+r.Key+"="+v[0]) ||
				!strings.Contains(err.Error(), "--allow-unsupported "+r.Key) {
				t.Fatalf("%s=%s: %v", r.Key, v[0], err)
			}
			if _, err := load(t, r.Key+"="+v[1]+"\n"); err != nil {
				t.Errorf("%s=%s: %v", r.Key, v[1], err)
			}
			c, err := load(t, r.Key+"="+v[0]+"\n", r.Key)
			if err != nil {
				t.Fatalf("with --allow-unsupported: %v", err)
			}
			if w := c.Warnings(); !slices.ContainsFunc(w, func(s string) bool {
				return strings.Contains(s, r.Key) && strings.Contains(s, "--allow-unsupported")
			}) {
				t.Errorf("nothing is said: %q", w)
			}
		})
	}
	if len(refusedValues) != len(refusals) {
		t.Errorf("%d rows, %d tests", len(refusals), len(refusedValues))
	}
}

// Without name servers from anywhere else, those of an address server would be all there is.
func TestAddressServerAlone(t *testing.T) {
	for text, allow := range map[string][]string{"namesrvAddr=a:1\n": nil, "": {addressServerKey}} {
		c, err := load(t, text+addressServerKey+"=true\n", allow...)
		if err == nil {
			err = c.Locate(c.Validate())
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	c, err := load(t, "#\n"+addressServerKey+"=true\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Locate(c.Validate()); err == nil || !strings.HasPrefix(err.Error(), "broker.conf:2: "+addressServerKey) || !strings.Contains(err.Error(), "give namesrvAddr") {
		t.Errorf("alone: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	c, err := load(t, strings.Join([]string{
		"brokerName=broker-a ",          // 1: blanks at the end
		"transientStorePoolEnable=true", // 2: no effect
		"transientStorePoolSize=5",      // 3: no effect, but Apache's default: not worth a line
		"serverWorkerThreads=16",        // 4
		"autocreatetopicenable=false",   // 5: unknown, wrong case
		"my.own.key=1",                  // 6
		"fileReservedTime=48",           // 7
		"fileReservedTime=24",           // 8
		"useEpollNativeSelector=true",   // 9
		"brokerRole=SYNC_MASTER",        // 10
		"flushDiskTyp=SYNC_FLUSH",       // 11: unknown, a letter is missing
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(c.Warnings(), "\n")
	for _, want := range []string{
		`broker.conf:2: transientStorePoolEnable=true has no effect: `,
		`broker.conf:4: serverWorkerThreads=16 has no effect: does not apply`,
		`broker.conf:5: unknown key "autocreatetopicenable" is ignored (did you mean "autoCreateTopicEnable"?)`,
		`broker.conf:6: unknown key "my.own.key" is ignored`,
		`warning: broker.conf:11: unknown key "flushDiskTyp" is ignored (did you mean "flushDiskType"?)`,
		`broker.conf:1: the value of "brokerName" ends in blanks`,
		`broker.conf:7: key "fileReservedTime" is given again further down`,
		`broker.conf:9: useEpollNativeSelector=true has no effect: concerns Netty`,
		`brokerRole=SYNC_MASTER with inSyncReplicas=1 waits for no slave`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "transientStorePoolSize") {
		t.Errorf("a default is worth no line:\n%s", got)
	}
	if c.Store.FileReservedHours != 24 {
		t.Errorf("fileReservedTime %d, the last one counts", c.Store.FileReservedHours)
	}
	if c.BrokerName != "broker-a " {
		t.Errorf("brokerName %q", c.BrokerName)
	}
}

func TestMalformedValues(t *testing.T) {
	for _, line := range []string{
		"listenPort=10911 # main", "autoCreateTopicEnable=yes", "waitTimeMillsInSendQueue=200ms", "fileReservedTime=two",
		"haSendHeartbeatInterval=x", // malformed also where the key has no effect
		"coldDataScanEnable=1", "timerRocksDBRollMaxTps=fast",
	} {
		_, err := load(t, "# head\n\n"+line+"\n")
		var se *props.SyntaxError
		if !errors.As(err, &se) || se.Line != 3 || !strings.HasPrefix(err.Error(), "broker.conf:3: ") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestConfigOfApachesDocs(t *testing.T) {
	c, err := load(t, `
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
namesrvAddr=192.168.0.1:9876;192.168.0.2:9876
brokerIP1=10.0.0.7
waitTimeMillsInSendQueue=400
sendMessageThreadPoolNums=8
registerNameServerPeriod=5000
channelExpiredTimeout=60000
`)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %q", w)
	}
	if c.SendWait != 400*time.Millisecond || c.SendThreads != 8 || c.ChannelExpired != time.Minute || c.Store.FileReservedHours != 48 ||
		c.HAListenPort != 10912 || c.BrokerIP1 != "10.0.0.7" {
		t.Errorf("%+v", c)
	}
}

func TestValidate(t *testing.T) {
	for key, change := range map[string]func(*Config){
		"brokerName":                func(c *Config) { c.BrokerName = "" },
		"brokerClusterName":         func(c *Config) { c.BrokerClusterName = "" },
		"listenPort":                func(c *Config) { c.ListenPort = 70000 },
		"brokerPermission":          func(c *Config) { c.BrokerPermission = 8 },
		"brokerRole":                func(c *Config) { c.BrokerRole = "MASTER" },
		"rocketmq.serialize.type":   func(c *Config) { c.SerializeType = "XML" },
		"sendMessageThreadPoolNums": func(c *Config) { c.SendThreads = 0 },
		"flushDiskType":             func(c *Config) { c.Store.FlushDiskType = "SOMETIMES" },
	} {
		c := DefaultConfig()
		c.Store.RootDir = "/tmp/x"
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestValues(t *testing.T) {
	c, err := load(t, "fileReservedTime=24\nmy.own=x\ncompressedRegister=true\ntls.server.keyPassword=secret\n")
	if err != nil {
		t.Fatal(err)
	}
	v := c.Values()
	for k, want := range map[string]string{
		"fileReservedTime": "24", "my.own": "x", "compressedRegister": "true", "haHousekeepingInterval": "20000",
		"flushDiskType": "ASYNC_FLUSH", "brokerConfigPath": "broker.conf", "sendMessageThreadPoolNums": apacheDefault("sendMessageThreadPoolNums"),
	} {
		if v[k] != want {
			t.Errorf("%s: %q, want %q", k, v[k], want)
		}
	}
	text := string(c.ValuesText())
	if strings.Contains(text, "secret") {
		t.Error("the key's password is shown")
	}
	if lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n"); !slices.IsSorted(lines) || len(lines) < 500 {
		t.Errorf("%d lines, sorted: %v", len(lines), slices.IsSorted(lines))
	}
}

func apacheDefault(key string) string { return defaultValue(apacheKeys()[key]) }

func TestLoadConfigReadsTLSFile(t *testing.T) {
	dir := t.TempDir()
	tls := filepath.Join(dir, "tls.properties")
	if err := os.WriteFile(tls, []byte("tls.server.mode=enforcing\ntls.odd=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "broker.conf")
	if err := os.WriteFile(conf, []byte("tls.config.file="+tls+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(conf, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.TLS.Mode != "enforcing" || c.Source != conf {
		t.Errorf("%+v", c.TLS)
	}
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], `tls.properties:2: unknown key "tls.odd"`) {
		t.Errorf("%q", w)
	}
	if _, err := LoadConfig(filepath.Join(dir, "none.conf"), nil); err == nil {
		t.Error("a missing file is an error")
	}
}
