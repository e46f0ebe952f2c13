package inspect_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/store/inspect"
)

// configFindings are the findings of a store about its configuration.
func configFindings(t *testing.T, root string) []string {
	t.Helper()
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	r, err := inspect.Verify(context.Background(), d, inspect.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range r.Findings {
		if !f.Note {
			out = append(out, f.File+": "+f.What)
		}
	}
	return out
}

// Each change of a configuration file that its own text, the log or the queues contradict is a finding, and repair leaves
// a store that verify finds nothing in.
func TestVerifyConfigContradictions(t *testing.T) {
	for name, c := range map[string]struct{ file, old, changed, want string }{
		"topic renamed":        {"topics.json", `"topicName":"`, `"topicName":"X`, "has the topicName"},
		"table of topics":      {"topics.json", `"topicConfigTable":{`, `"topicConfigTablf":{`, "no member topicConfigTable"},
		"group renamed":        {"subscriptionGroup.json", `"groupName":"`, `"groupName":"X`, "has the groupName"},
		"table of groups":      {"subscriptionGroup.json", `"subscriptionGroupTable":{`, `"subscriptionGroupTable":1,"x":{`, "is no object"},
		"progress beyond":      {"delayOffset.json", `3:`, `3:999999`, "ends at"},
		"progress negative":    {"delayOffset.json", `3:`, `3:-`, "ends at"},
		"progress of no level": {"delayOffset.json", `3:`, `"l3":`, "is no number"},
		"progress no number":   {"delayOffset.json", `3:`, `3:true,99:`, "is no number"},
		"offset beyond":        {"consumerOffset.json", `0:`, `0:999999`, "ends at"},
		"queue no number":      {"consumerOffset.json", `0:`, `"q0":`, "is no number"},
		"offsets no object":    {"consumerOffset.json", `"offsetTable":{`, `"offsetTable":{"A@B":7,`, "is no object"},
	} {
		t.Run(name, func(t *testing.T) {
			root := testkit.GoldenStore(t, map[bool]string{true: "retry_dlq", false: "delay_timer"}[c.file == "consumerOffset.json"])
			path := filepath.Join(root, "config", c.file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			i := strings.Index(string(b), `"offsetTable"`)
			if i < 0 || c.old[0] == '"' {
				i = 0
			}
			text := string(b[:i]) + strings.Replace(string(b[i:]), c.old, c.changed, 1)
			if text == string(b) {
				t.Fatalf("%s has no %s", c.file, c.old)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := configFindings(t, root)
			if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "config/"+c.file) && strings.Contains(s, c.want) }) {
				t.Fatalf("findings %q", got)
			}
			repair(t, root)
			if got := configFindings(t, root); len(got) > 0 {
				t.Errorf("after the repair: %q", got)
			}
		})
	}
}

// Offsets of light queues stand in a file of their own, and are compared like the others.
func TestLightOffsets(t *testing.T) {
	root := testkit.GoldenStore(t, "lmq")
	path := filepath.Join(root, "config", "lmqConsumerOffset.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	light := ""
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := d.Queues()
	_ = d.Close()
	for _, k := range keys {
		if strings.HasPrefix(k.Topic, "%LMQ%") {
			light = k.Topic
		}
	}
	if err != nil || light == "" {
		t.Fatalf("no light queue: %v", err)
	}
	text := strings.Replace(string(b), `"lmqOffsetTable":{}`, `"lmqOffsetTable":{"`+light+`@CG":1,"`+light+`@CG2":999}`, 1)
	text = strings.Replace(text, `"offsetTable":{}`, `"offsetTable":{"LmqTopic@CG3":{0:2}}`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	offsets := func() map[string]int64 {
		d, err := inspect.Open(root, inspect.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		list, err := d.Offsets()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int64{}
		for _, o := range list {
			out[o.Topic+"@"+o.Group] = o.Offset
		}
		return out
	}
	if got := offsets(); got[light+"@CG"] != 1 || got[light+"@CG2"] != 999 || got["LmqTopic@CG3"] != 2 {
		t.Errorf("offsets %v", got)
	}
	if got := configFindings(t, root); len(got) != 1 || !strings.Contains(got[0], light+"@CG2 has the offset 999") {
		t.Fatalf("findings %q", got)
	}
	repair(t, root)
	if got := configFindings(t, root); len(got) > 0 || offsets()[light+"@CG2"] >= 999 || offsets()[light+"@CG"] != 1 {
		t.Errorf("after the repair: %q, offsets %v", got, offsets())
	}
}
