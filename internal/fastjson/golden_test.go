package fastjson_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/fastjson"
	"mqx/internal/testkit"
)

// goldenConfigs calls f for every JSON file under config/ of a store that
// Apache wrote.
func goldenConfigs(t testing.TB, variant string, f func(name string, text []byte)) {
	t.Helper()
	dir := filepath.Join(testkit.GoldenStore(t, variant), "config")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".json" && e.Name() != "timermetrics" && e.Name() != "transactionMetrics" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		f(e.Name(), text)
	}
}

func TestGoldenConfigsComeBackToTheByte(t *testing.T) {
	files := 0
	for _, variant := range testkit.GoldenStores() {
		goldenConfigs(t, variant, func(name string, text []byte) {
			v, err := fastjson.ParseOrdered(text)
			if len(text) == 0 || variant == "clean_topics_corrupt" && name == "topics.json" {
				if err == nil {
					t.Errorf("%s %s: the broken file was read", variant, name)
				}
				return
			}
			if err != nil {
				t.Errorf("%s %s: %v", variant, name, err)
				return
			}
			write := fastjson.MarshalPretty
			if filepath.Ext(name) != ".json" {
				write = fastjson.Marshal
			}
			out, err := write(v)
			if err != nil {
				t.Errorf("%s %s: %v", variant, name, err)
				return
			}
			if !bytes.Equal(out, text) {
				t.Errorf("%s %s: wrote\n%s\nApache\n%s", variant, name, out, text)
			}
			files++
		})
	}
	if files < 200 {
		t.Errorf("%d files", files)
	}
}

// FuzzText: what is read is written so that it reads the same, in every form.
func FuzzText(f *testing.F) {
	for _, variant := range []string{"basic", "pop", "cqext", "delay_timer"} {
		goldenConfigs(f, variant, func(_ string, text []byte) {
			if len(text) < 3000 {
				f.Add(text)
			}
		})
	}
	for _, name := range []string{"mqadmin_JSON", "go_push_JSON", "java_pop_JSON"} {
		seen := map[int32]bool{}
		for _, w := range testkit.GoldenWire(f, name) {
			body := w.Raw[len(w.Raw)-w.BodyLen:]
			code := w.Code
			if w.RequestCode != nil {
				code = -*w.RequestCode
			}
			if w.Kind == testkit.WireFrameKind && len(body) > 0 && len(body) < 2000 && body[0] == '{' && !seen[code] {
				seen[code] = true
				f.Add(body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var into struct {
			OffsetTable map[struct {
				Topic   string `json:"topic"`
				QueueID int32  `json:"queueId"`
			}]int64 `json:"offsetTable"`
			Table           map[string]string         `json:"table"`
			BrokerAddrs     map[int64]string          `json:"brokerAddrs"`
			ConsumerDataSet []struct{ Name *string }  `json:"consumerDataSet"`
			Config          map[string]map[string]any `json:"topicConfigTable"`
		}
		_ = fastjson.Unmarshal(text, &into) // only must not panic
		v, err := fastjson.ParseOrdered(text)
		if err != nil {
			return
		}
		first, err := fastjson.Marshal(v)
		if err != nil {
			return // keys nest deeper when they are written
		}
		for _, write := range []func(any) ([]byte, error){fastjson.Marshal, fastjson.MarshalPretty} {
			out, err := write(v)
			if err != nil {
				t.Fatal(err)
			}
			back, err := fastjson.ParseOrdered(out)
			if err != nil {
				t.Fatalf("cannot read what was written: %v: %s", err, out)
			}
			again, err := fastjson.Marshal(back)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, again) {
				t.Fatalf("%s came back as %s", first, again)
			}
		}
	})
}
