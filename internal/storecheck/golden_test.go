package storecheck_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mqx/internal/storecheck"
	"mqx/internal/testkit"
	"mqx/internal/vfs"
)

// The rules hold for the stores that Apache's broker wrote: what they find wrong elsewhere is wrong there.
func TestApacheStoresAgree(t *testing.T) {
	for _, variant := range []string{"basic", "batch", "compress", "cqext", "ipv6", "propcrc", "roll", "v2"} {
		t.Run(variant, func(t *testing.T) {
			root := testkit.GoldenStore(t, variant)
			l, err := storecheck.ReadLog(vfs.OS, root+"/commitlog")
			if err != nil {
				t.Fatal(err)
			}
			if want := testkit.GoldenManifest(t, variant).StoreView.CommitLogRecordCount; len(l.Records) != want || len(l.Rot)+len(l.Tail) > 0 {
				t.Fatalf("%d records, want %d; rot %v, tail %v", len(l.Records), want, l.Rot, l.Tail)
			}
			queues, err := storecheck.ReadQueues(vfs.OS, root)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range storecheck.CheckQueues(l, queues, nil, nil) {
				t.Error(err)
			}
			x, err := storecheck.ReadIndex(vfs.OS, root, slotsOf(t, variant), l)
			if err != nil {
				t.Fatal(err)
			}
			if len(x.Entries) == 0 {
				t.Fatal("no index entry was read")
			}
			for _, err := range storecheck.CheckIndex(l, x) {
				t.Error(err)
			}
			t.Logf("%d records, %d queues, %d entries", len(l.Records), len(slices.Collect(maps.Keys(queues))), len(x.Entries))
		})
	}
}

func slotsOf(t *testing.T, variant string) int {
	t.Helper()
	text, ok := testkit.GoldenManifest(t, variant).BrokerConfig["maxHashSlotNum"]
	if !ok {
		return 5_000_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Each kind of disagreement is found.
func TestDisagreementIsFound(t *testing.T) {
	const queue = "consumequeue/TopicA/0/00000000000000000000"
	write := func(name string, off int64, b ...byte) func(t *testing.T, root string) {
		return func(t *testing.T, root string) {
			f, err := vfs.OS.OpenFile(filepath.Join(root, name), os.O_RDWR)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(b, off); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(t *testing.T, root string) {
		return func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	const index = "index/20261129225021865"
	for name, c := range map[string]struct {
		damage func(t *testing.T, root string)
		want   string
	}{
		"nothing":             {func(*testing.T, string) {}, ""},
		"unit elsewhere":      {write(queue, 7, 0x77), "unit 0 is"},
		"unit of other size":  {write(queue, 11, 0x77), "unit 0 is"},
		"unit of other tag":   {write(queue, 19, 0x77), "unit 0 is"},
		"unit missing":        {write(queue, 0, make([]byte, 20)...), "behind the end"},
		"unit too many":       {write(queue, 20*200, 1, 1, 1, 1, 1), "behind the end"},
		"queue missing":       {remove("consumequeue/TopicA/0"), "is missing"},
		"head of index":       {write(index, 39, 1), "want"},
		"slot of index":       {write(index, 43, 0x77), "slot 0"},
		"index missing":       {remove("index"), "0 entries"},
		"record broken":       {write("commitlog/00000000000000000000", 100, 0xFF, 0xFF), "no record of it is"},
		"bytes behind":        {write("commitlog/00000000000000000000", 1<<20-1, 1), "behind the end"},
		"log file in between": {write("commitlog/00000000000000000000", 4, 0xCB, 0xD4, 0x31, 0x94), "no record of it is"},
	} {
		t.Run(name, func(t *testing.T) {
			root := testkit.GoldenStore(t, "basic")
			c.damage(t, root)
			_, errs := storecheck.CheckStopped(vfs.OS, root, storecheck.Options{Slots: slotsOf(t, "basic")})
			text := errors.Join(errs...)
			if c.want == "" && text != nil || c.want != "" && (text == nil || !strings.Contains(text.Error(), c.want)) {
				t.Errorf("found %v, want something with %q", text, c.want)
			}
		})
	}
}
