package inspect_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/store/inspect"
)

func verify(t testing.TB, root string) *inspect.Report {
	t.Helper()
	return verifyWith(t, root, inspect.VerifyOptions{})
}

func verifyWith(t testing.TB, root string, o inspect.VerifyOptions) *inspect.Report {
	t.Helper()
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := inspect.Verify(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// damages is what the manifests describe: kind, file, byte, number of messages; notes begin with `note`. The other stores
// have nothing, or the note that they were not closed.
var damages = map[string][]string{
	"clean_body_mid_lastfile":   {"log-rot commitlog/00000000000000262144 9763: 1 [CrashA/1 29]"},
	"clean_body_mid_secondfile": {"log-rot commitlog/00000000000000131072 58548: 1 [CrashA/0 23]"},
	"clean_cq_beyond":           {"queue-ahead consumequeue/CrashA/1/00000000000000000000 600: 3 [CrashA/1 30..32]"},
	"clean_cq_missing":          {"queue-missing consumequeue -1: 90 [CrashA/0 0..29 CrashA/1 0..29 CrashB/0 0..29]"},
	"clean_cq_tail_zeroed":      {"queue-behind consumequeue/CrashA/0/00000000000000000000 500: 5 [CrashA/0 25..29]"},
	"clean_firstfile_missing":   nil, // what retention leaves looks the same
	"clean_index_missing":       {"index-missing index -1: 90 []"},
	"clean_lastfile_missing": {
		"queue-ahead consumequeue/CrashA/0/00000000000000000000 580: 1 [CrashA/0 29]",
		"queue-ahead consumequeue/CrashA/1/00000000000000000000 560: 2 [CrashA/1 28..29]",
		"queue-ahead consumequeue/CrashB/0/00000000000000000000 560: 2 [CrashB/0 28..29]",
		"index-ahead index/20261129225558764 9160: -1 []",
	},
	"clean_lastfile_short":     {"log-file-size commitlog/00000000000000262144 12403: 3 [CrashA/0 29 CrashA/1 29 CrashB/0 29]"},
	"clean_midfile_missing":    {"log-hole commitlog/00000000000000131072 0: 30 [CrashA/0 19..28 CrashA/1 18..27 CrashB/0 18..27]"},
	"clean_offsets_empty":      {"config-file config/consumerOffset.json -1: 0 []"},
	"clean_topics_corrupt":     {"config-file config/topics.json -1: 0 []"},
	"crash_body_mid_firstfile": {"log-rot commitlog/00000000000000000000 47256: 1 [CrashA/1 9]"},
	"crash_body_mid_lastfile":  {"log-rot commitlog/00000000000000262144 9763: 1 [CrashA/1 29]"},
	"crash_checkpoint_missing": {string(inspect.FindCheckpoint) + " checkpoint -1: 0 []"},
	"crash_cq_missing":         {"queue-missing consumequeue -1: 90 [CrashA/0 0..29 CrashA/1 0..29 CrashB/0 0..29]"},
	"crash_cq_tail_zeroed":     {"note queue-behind consumequeue/CrashA/0/00000000000000000000 500: 5 [CrashA/0 25..29]"},
	"crash_index_corrupt":      {"index-damaged index/20261129225542986 0: -1 []"},
	"crash_index_missing":      {"index-missing index -1: 90 []"},
	"crash_magic_mid_lastfile": {"log-rot commitlog/00000000000000262144 9763: 1 [CrashA/1 29]"},
	"crash_midfile_missing":    {"log-hole commitlog/00000000000000131072 0: 30 [CrashA/0 19..28 CrashA/1 18..27 CrashB/0 18..27]"},
	"crash_tail_bad_crc":       {"log-torn commitlog/00000000000000262144 19772: 1 [CrashB/0 29]"},
	"crash_torn_lengthonly":    {"log-torn commitlog/00000000000000262144 19772: 1 [CrashB/0 29]"},
	"crash_torn_tail":          {"log-torn commitlog/00000000000000262144 19772: 1 [CrashB/0 29]"},
}

// Nothing is found in the sound stores that Apache's broker wrote, and in the damaged ones what was done to them.
func TestVerifyGolden(t *testing.T) {
	for _, variant := range testkit.GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			r := verify(t, testkit.GoldenStore(t, variant))
			var got []string
			for _, f := range r.Findings {
				if f.Kind == inspect.FindDirty {
					continue
				}
				text := fmt.Sprintf("%s %s %d: %d %v", f.Kind, f.File, f.Offset, f.Messages, f.Affected)
				if f.Note {
					text = "note " + text
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(damages[variant], got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			notClosed := slices.ContainsFunc(r.Findings, func(f *inspect.Finding) bool { return f.Kind == inspect.FindDirty })
			if notClosed == r.InUse.Clean() {
				t.Errorf("note of a store that was not closed: %v", notClosed)
			}
			m := testkit.GoldenManifest(t, variant)
			if m.StoreView != nil && r.Records != int64(m.StoreView.CommitLogRecordCount) {
				t.Errorf("%d records, want %d", r.Records, m.StoreView.CommitLogRecordCount)
			}
		})
	}
}
