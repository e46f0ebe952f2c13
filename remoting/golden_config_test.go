package remoting

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"mqx/internal/fastjson"
	"mqx/internal/testkit"
)

// TestGoldenConfigFilesComeBack reads the tables that Apache keeps under
// config/ into their structs and writes them: the same text up to the order of
// map entries.
func TestGoldenConfigFilesComeBack(t *testing.T) {
	tables := map[string]reflect.Type{
		"topics.json":             reflect.TypeFor[TopicConfigTable](),
		"subscriptionGroup.json":  reflect.TypeFor[SubscriptionGroupTable](),
		"consumerOffset.json":     reflect.TypeFor[ConsumerOffsets](),
		"delayOffset.json":        reflect.TypeFor[DelayOffsets](),
		"messageRequestMode.json": reflect.TypeFor[MessageRequestModes](),
	}
	files := 0
	for _, variant := range testkit.GoldenStores() {
		dir := filepath.Join(testkit.GoldenStore(t, variant), "config")
		for name, typ := range tables {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if os.IsNotExist(err) || len(text) == 0 || variant == "clean_topics_corrupt" && name == "topics.json" {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			v := reflect.New(typ).Interface()
			if err := fastjson.Unmarshal(text, v); err != nil {
				t.Errorf("%s %s: %v", variant, name, err)
				continue
			}
			out, err := fastjson.MarshalPretty(v)
			if err != nil {
				t.Errorf("%s %s: %v", variant, name, err)
				continue
			}
			if want, got := prettySorted(t, text), prettySorted(t, out); want != got || len(text) != len(out) {
				t.Errorf("%s %s: wrote\n%s\nApache\n%s", variant, name, out, text)
			}
			files++
		}
	}
	if files < 100 {
		t.Errorf("%d files", files)
	}
}

func prettySorted(t *testing.T, text []byte) string {
	t.Helper()
	out, err := fastjson.MarshalPretty(sortObjects(parseOrdered(t, text)))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
