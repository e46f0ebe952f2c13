package broker

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mqx/filter"
	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

func testFilters(t *testing.T, path string, groups int, ck clock.Clock) *filterTable {
	t.Helper()
	bloom, err := filter.NewBloom(20, groups)
	if err != nil {
		t.Fatal(err)
	}
	f := newFilterTable(vfs.OS, path, bloom, func() time.Duration { return 24 * time.Hour }, ck.Now, slog.New(slog.DiscardHandler))
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	return f
}

func sqlSub(topic, expr string, version int64) map[string]remoting.SubscriptionData {
	return map[string]remoting.SubscriptionData{topic: {Topic: topic, SubString: expr, ExpressionType: "SQL92", SubVersion: version}}
}

func (t *filterTable) follows(group string, subs map[string]remoting.SubscriptionData) {
	t.Follow(group, func() map[string]remoting.SubscriptionData { return subs })
}

func (t *filterTable) get(topic, group string) *filterData {
	return t.Get([]byte(topic), []byte(group))
}

// What Apache wrote is read and written again to the byte.
func TestFilterFileAsApache(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join(testkit.GoldenStore(t, "cqext"), "config", "consumerFilter.json"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "consumerFilter.json")
	if err := os.WriteFile(path, golden, 0o600); err != nil {
		t.Fatal(err)
	}
	ck := clock.NewManual(time.UnixMilli(1795993305461))
	f := testFilters(t, path, 8, ck)
	d := f.get("ExtTopic", "CG_ext_sql2")
	if d == nil || !d.dead() || d.born != 1795993297867 || d.version != 1795993300115 {
		t.Fatalf("%+v", d)
	}
	f.mu.changes++
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, golden) {
		t.Errorf("%v\n%s", err, got)
	}
	// A bloom filter of another shape cannot use any of it.
	if f = testFilters(t, path, 32, ck); f.get("ExtTopic", "CG_ext_sql") != nil {
		t.Error("bits of another shape are in use")
	}
	// A day after their end they are forgotten.
	ck.Advance(24 * time.Hour)
	f = testFilters(t, path, 8, ck)
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if f = testFilters(t, path, 8, ck); f.Has("CG_ext_sql") || f.Has("CG_ext_sql2") {
		t.Error("what died long ago is kept")
	}
}

func TestFilterLife(t *testing.T) {
	ck := clock.NewManual(time.UnixMilli(1_000_000))
	path := filepath.Join(t.TempDir(), "consumerFilter.json")
	f := testFilters(t, path, 32, ck)
	f.follows("G", sqlSub("T", "a = 1", 5))
	first := f.get("T", "G")
	if first == nil || first.dead() || first.born != 1_000_000 || first.version != 5 {
		t.Fatalf("%+v", first)
	}
	ck.Advance(time.Second)
	f.follows("G", sqlSub("T", "a = 1", 6)) // the same expression of a client that began anew
	if d := f.get("T", "G"); d.version != 6 || d.born != first.born {
		t.Errorf("%+v", d)
	}
	f.follows("G", nil)
	if d := f.get("T", "G"); !d.dead() || d.died != 1_001_000 {
		t.Errorf("%+v", d)
	}
	f.follows("G", sqlSub("T", "a = 1", 6))
	if d := f.get("T", "G"); d.dead() || d.born != first.born {
		t.Errorf("%+v", d)
	}
	f.follows("G", sqlSub("T", "a = 2", 7))
	if d := f.get("T", "G"); d.born != 1_001_000 || d.expression != "a = 2" {
		t.Errorf("%+v", d) // bit maps of before were computed with another expression
	}
	f.follows("G", sqlSub("U", "a = 3", 8))
	if d := f.get("T", "G"); !d.dead() {
		t.Error("a topic that left the subscription is in force")
	}
	f.follows("G", sqlSub("U", "a = ", 9))
	if d := f.get("U", "G"); d != nil {
		t.Error("a broken expression left the old one in force")
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if d := testFilters(t, path, 32, ck).get("T", "G"); d == nil || !d.dead() {
		t.Errorf("%+v", d)
	}
}

func TestFiltersAreBounded(t *testing.T) {
	f := testFilters(t, filepath.Join(t.TempDir(), "f.json"), 32, clock.NewManual(time.UnixMilli(1)))
	text := "a = '" + string(bytes.Repeat([]byte("x"), 60_000)) + "'"
	for i := range maxFilterBytes/60_000 + 10 {
		f.follows(string(rune('a'+i%26))+string(rune('a'+i/26)), sqlSub("T", text, 1))
	}
	if f.mu.bytes > maxFilterBytes {
		t.Errorf("%d bytes of expressions", f.mu.bytes)
	}
}

func TestBitMapOfMessage(t *testing.T) {
	f := testFilters(t, filepath.Join(t.TempDir(), "f.json"), 8, clock.NewManual(time.UnixMilli(1000)))
	if got := f.AppendBitMap(nil, []byte("T"), nil); got != nil {
		t.Errorf("%x", got)
	}
	f.follows("G", sqlSub("T", "a = 1", 5))
	f.follows("H", sqlSub("T", "a > 1", 5))
	one := f.AppendBitMap(nil, []byte("T"), []byte("a\x011\x02"))
	g, h := f.get("T", "G"), f.get("T", "H")
	if !filter.Hit(one, g.bits) || filter.Hit(one, h.bits) || len(one) != 4 {
		t.Errorf("%x", one)
	}
	tests := []struct {
		name string
		unit store.ExtUnit
		want bool
	}{
		{"its bits are not set", store.ExtUnit{StoreTime: 1001, BitMap: make([]byte, 4)}, false},
		{"its bits are set", store.ExtUnit{StoreTime: 1001, BitMap: one}, true},
		{"older than the subscription", store.ExtUnit{StoreTime: 1000, BitMap: make([]byte, 4)}, true},
		{"no bit map", store.ExtUnit{StoreTime: 1001}, true},
		{"a bit map of another length", store.ExtUnit{StoreTime: 1001, BitMap: make([]byte, 14)}, true},
	}
	for _, tt := range tests {
		if got := (exprFilter{g}).MatchExt(tt.unit); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	topic, props := []byte("T"), []byte("a\x011\x02")
	if n := testing.AllocsPerRun(100, func() { one = f.AppendBitMap(one[:0], topic, props) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRetryFilter(t *testing.T) {
	f := testFilters(t, filepath.Join(t.TempDir(), "f.json"), 32, clock.NewManual(time.UnixMilli(1000)))
	f.follows("G", sqlSub("T", "a = 1", 5))
	r := retryFilter{f, "G"}
	props := func(kv ...string) []byte { return []byte(prop(kv...)) }
	for _, tt := range []struct {
		props []byte
		want  bool
	}{
		{props(message.PropRetryTopic, "T", "a", "1"), true},
		{props(message.PropRetryTopic, "T", "a", "2"), false},
		{props(message.PropRetryTopic, "other", "a", "2"), true},
		{props("a", "2"), true},
	} {
		if got := r.MatchProperties(tt.props); got != tt.want {
			t.Errorf("%q: %v", tt.props, got)
		}
	}
}
