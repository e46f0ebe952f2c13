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

func preflight(t *testing.T, d *inspect.Dir, target inspect.Target, conf map[string]string) []*inspect.Issue {
	t.Helper()
	list, err := inspect.Preflight(context.Background(), d, inspect.PreflightOptions{Target: target, Conf: conf})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// kindsOf are the kinds of issues that are no notes, each once.
func kindsOf(list []*inspect.Issue) string {
	var out []string
	for _, x := range list {
		if x.Unsafe() && !slices.Contains(out, x.Kind) {
			out = append(out, x.Kind)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// unsafeGolden are the golden stores that are not safe for a target. What the brokers then do is an end-to-end test:
// e2e/preflight_test.go.
var unsafeGolden = map[inspect.Target]map[string]string{
	inspect.TargetApache55: {
		"clean_body_mid_lastfile": "log-cut", "clean_body_mid_secondfile": "broken-record", "clean_cq_tail_zeroed": "queue-behind",
		"clean_index_missing": "index-missing", "clean_lastfile_short": "file-size", "crash_body_mid_firstfile": "log-cut",
		"crash_body_mid_lastfile": "log-cut", "crash_magic_mid_lastfile": "log-cut", "slave_j1": "topic-unknown",
	},
	inspect.TargetApache53: {
		"clean_body_mid_lastfile": "log-cut", "clean_body_mid_secondfile": "broken-record", "clean_cq_tail_zeroed": "queue-behind",
		"clean_index_missing": "index-missing", "clean_lastfile_short": "file-size", "crash_body_mid_firstfile": "log-cut",
		"crash_body_mid_lastfile": "log-cut", "crash_magic_mid_lastfile": "log-cut", "slave_j1": "topic-unknown", "pop_kv": "rocksdb-pop",
	},
	inspect.TargetApache49: {
		"clean_body_mid_lastfile": "log-cut", "clean_body_mid_secondfile": "log-cut", "clean_cq_tail_zeroed": "queue-behind",
		"clean_index_missing": "index-missing", "clean_lastfile_short": "file-size", "crash_body_mid_firstfile": "log-cut",
		"crash_body_mid_lastfile": "log-cut", "crash_magic_mid_lastfile": "log-cut", "slave_j1": "rocksdb-auth topic-unknown",
		"pop_kv": "rocksdb-pop", "batchcq": "batch-queues", "delay_timer": "timer", "delay_timer_running": "timer", "master_mixed_j1": "rocksdb-auth",
		"pop": "pop timer", "pop_buffermerge": "pop timer", "pop_running": "pop timer", "v2": "pop record-v2",
	},
	inspect.TargetMQX: {
		"clean_body_mid_secondfile": "broken-record", "master_mixed_j1": "rocksdb-auth", "slave_j1": "rocksdb-auth topic-unknown", "pop_kv": "rocksdb-pop",
	},
}

func TestPreflightOfGoldenStores(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			d := openGolden(t, variant)
			for _, target := range inspect.Targets() {
				list := preflight(t, d, target, nil)
				if got, want := kindsOf(list), unsafeGolden[target][variant]; got != want {
					t.Errorf("for %s: %q, want %q", target, got, want)
				}
				for i, x := range list {
					if x.What == "" || x.Kind == "" || i > 0 && x.Unsafe() && !list[i-1].Unsafe() {
						t.Errorf("for %s: %+v", target, x)
					}
				}
			}
		})
	}
}

// A configuration whose sizes are others is told, and one that lacks a switch.
func TestPreflightComparesWithTheConfiguration(t *testing.T) {
	d := openGolden(t, "cqext")
	right := map[string]string{
		"mappedFileSizeCommitLog": "1048576", "mappedFileSizeConsumeQueue": "6000", "mappedFileSizeConsumeQueueExt": "65536",
		"maxHashSlotNum": "1000", "maxIndexNum": "4000", "mappedFileSizeTimerLog": "1048576", "enableConsumeQueueExt": "true",
	}
	if got := kindsOf(preflight(t, d, inspect.TargetApache55, right)); got != "" {
		t.Error(got)
	}
	delete(right, "enableConsumeQueueExt")
	right["mappedFileSizeCommitLog"] = "2097152"
	delete(right, "maxIndexNum")
	list := preflight(t, d, inspect.TargetApache55, right)
	if got := kindsOf(list); got != "ext-units file-size" || list[0].Risk != inspect.RiskStart || list[0].Try != "mappedFileSizeCommitLog=1048576" {
		t.Errorf("%s %+v", got, list[0])
	}
	if got := kindsOf(preflight(t, d, inspect.TargetMQX, map[string]string{})); got != "ext-units" {
		t.Error(got)
	}
}

// Parts of other kinds of brokers are told by name.
func TestPreflightOfForeignKinds(t *testing.T) {
	for path, want := range map[string]map[inspect.Target]string{
		"consumequeue_rocksdb/CURRENT":    {inspect.TargetApache49: "rocksdb-queues", inspect.TargetMQX: "rocksdb-queues"},
		"config/topics/CURRENT":           {inspect.TargetApache49: "rocksdb-config", inspect.TargetMQX: "rocksdb-config"},
		"compaction/compactionLog/T/0/0":  {inspect.TargetApache49: "compaction", inspect.TargetMQX: "compaction"},
		"dledger-n0/data/00000000000":     {inspect.TargetMQX: "dledger"},
		"rocksdbstore/000012.sst":         {inspect.TargetApache49: "rocksdb-store", inspect.TargetApache53: "rocksdb-store", inspect.TargetMQX: "rocksdb-store"},
		"commitlog/notes.txt":             {inspect.TargetApache49: "foreign-file", inspect.TargetApache53: "foreign-file", inspect.TargetApache55: "foreign-file"},
		"mqx/import.json":                 {inspect.TargetApache49: "unfinished", inspect.TargetApache53: "unfinished", inspect.TargetApache55: "unfinished", inspect.TargetMQX: "unfinished"},
		"mqx/salvage/1/commitlog":         {},
		"config/topicQueueMapping.json":   {inspect.TargetApache49: "static-topics"},
		"config/subscriptionGroup.json":   {},
		"consumequeue/TopicA/0/notes.txt": {inspect.TargetApache49: "foreign-file", inspect.TargetApache53: "foreign-file", inspect.TargetApache55: "foreign-file"},
	} {
		root := testkit.GoldenStore(t, "basic")
		text := "x"
		switch filepath.Base(path) {
		case "topicQueueMapping.json":
			text = `{"topicQueueMappingInfoMap":{"S":{"topic":"S"}}}`
		case "subscriptionGroup.json":
			text = `{"subscriptionGroupTable":{"G":{"groupName":"G","newSetting":3}}}`
		}
		full := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, target := range inspect.Targets() {
			list := preflight(t, open(t, root), target, nil)
			if got := kindsOf(list); got != want[target] {
				t.Errorf("%s for %s: %q, want %q", path, target, got, want[target])
			}
			if text != "x" && target != inspect.TargetMQX && filepath.Base(path) == "subscriptionGroup.json" &&
				!slices.ContainsFunc(list, func(x *inspect.Issue) bool {
					return x.Kind == "json-members" && strings.Contains(x.What, "newSetting")
				}) {
				t.Errorf("%s: a member that is not known is not told", target)
			}
		}
	}
}

// A lone log file that was cut, and a file so far behind that the log would have no end, are told and hide nothing.
func TestPreflightNastyLogs(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, first string)
		kind string
	}{
		"lone file cut": {func(t *testing.T, first string) {
			t.Helper()
			if err := os.Truncate(first, 2); err != nil {
				t.Fatal(err)
			}
		}, "file-size"},
		"file at the end of numbers": {func(t *testing.T, first string) {
			t.Helper()
			b, err := os.ReadFile(first)
			if err == nil {
				err = os.WriteFile(filepath.Join(filepath.Dir(first), "09223372036854775807"), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "foreign-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := testkit.GoldenStore(t, "basic")
			c.harm(t, filepath.Join(root, "commitlog", inspect.FileName(0)))
			d, err := inspect.Open(root, inspect.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			list, err := inspect.Preflight(t.Context(), d, inspect.PreflightOptions{Target: inspect.TargetApache55})
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, x := range list {
				if x.Risk == inspect.RiskStart {
					kinds = append(kinds, x.Kind)
				}
				if name != "lone file cut" && x.Kind == "queue-ahead" {
					t.Errorf("the end of the log is lost: %s", x.What)
				}
			}
			if !slices.Contains(kinds, c.kind) {
				t.Errorf("reasons not to start %q, want %s", kinds, c.kind)
			}
		})
	}
}
