package store

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"mqx/internal/vfs"
)

func TestReconfigure(t *testing.T) {
	cfg := memConfig(vfs.NewMem())
	s := mustOpen(t, cfg)
	body := strings.Repeat("x", 5000)
	if p := put(t, s, newRecord("T", 0, body, "")); p.Status != MessageIllegal {
		t.Fatalf("before: %v", p.Status)
	}
	cfg.MaxMessageBytes, cfg.DeleteWhen, cfg.FlushDiskType = 6000, "05", SyncFlush
	live, restart, err := s.Reconfigure(cfg)
	if err != nil || !slices.Equal(live, []string{"maxMessageSize", "deleteWhen"}) || !slices.Equal(restart, []string{"flushDiskType"}) {
		t.Fatalf("live %v, after a restart %v, %v", live, restart, err)
	}
	if p := put(t, s, newRecord("T", 0, body, "")); p.Status != PutOK {
		t.Errorf("after: %v %v", p.Status, p.Err)
	}
	cfg.DeleteWhen = "25"
	if _, _, err := s.Reconfigure(cfg); err == nil || s.conf().DeleteWhen != "05" {
		t.Errorf("a bad value: %v, %q in effect", err, s.conf().DeleteWhen)
	}
}

// Every live key is one of the configuration.
func TestLiveKeysExist(t *testing.T) {
	known := map[string]bool{}
	for f := range reflect.TypeFor[Config]().Fields() {
		known[f.Tag.Get("conf")] = true
	}
	for key := range liveKeys {
		if !known[key] {
			t.Errorf("%s is no key of the store", key)
		}
	}
}
