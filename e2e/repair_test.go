package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store/inspect"
)

// repairsByApache are those of repairs that Apache's broker starts on in the short form; MQX_E2E_ALL=1 tries it on all.
var repairsByApache = []string{"crash_body_mid_firstfile", "clean_cq_missing"}

// repaired is a damaged store and the messages of it that cannot be read any more: topic, queue, offset. Those of the end of
// the log are cut, and so is what the queues had of them.
type repaired struct {
	lost   []string
	all    bool                            // tried with MQX_E2E_ALL=1 only
	golden string                          // the golden store, where the name is not its name
	damage func(t *testing.T, root string) // what is done to it before
	step   string                          // a step of the plan that there has to be
}

var repairs = map[string]repaired{
	"crash_body_mid_firstfile":  {lost: []string{"CrashA/1/9"}},
	"clean_body_mid_lastfile":   {lost: []string{"CrashA/1/29"}},
	"crash_magic_mid_lastfile":  {lost: []string{"CrashA/1/29"}},
	"clean_midfile_missing":     {lost: span30()},
	"clean_lastfile_short":      {lost: []string{"CrashA/0/29", "CrashA/1/29", "CrashB/0/29"}},
	"crash_torn_tail":           {lost: []string{"CrashB/0/29"}},
	"clean_cq_missing":          {},
	"clean_cq_tail_zeroed":      {},
	"clean_topics_corrupt":      {},
	"clean_body_mid_secondfile": {lost: []string{"CrashA/0/23"}, all: true},
	"crash_body_mid_lastfile":   {lost: []string{"CrashA/1/29"}, all: true},
	"crash_tail_bad_crc":        {lost: []string{"CrashB/0/29"}, all: true},
	"crash_torn_lengthonly":     {lost: []string{"CrashB/0/29"}, all: true},
	"crash_midfile_missing":     {lost: span30(), all: true},
	"clean_lastfile_missing":    {lost: []string{"CrashA/0/29", "CrashA/1/28", "CrashA/1/29", "CrashB/0/28", "CrashB/0/29"}, all: true},
	"clean_firstfile_missing":   {lost: firstOnes(map[string]int{"CrashA/0": 19, "CrashA/1": 18, "CrashB/0": 18}), all: true},
	"clean_cq_beyond":           {all: true},
	"clean_index_missing":       {all: true},
	"clean_offsets_empty":       {all: true},
	"clean_reference":           {all: true},
	"crash_checkpoint_missing":  {all: true},
	"crash_cq_missing":          {all: true},
	"crash_cq_tail_zeroed":      {all: true},
	"crash_index_corrupt":       {all: true},
	"crash_index_missing":       {all: true},
	"crash_kill9_quiet":         {all: true},
	"heads":                     {golden: "clean_reference", damage: hurtHeads, step: "mend-records"},
	"heads and a body":          {golden: "crash_body_mid_firstfile", damage: hurtHeads, step: "mend-records", lost: []string{"CrashA/1/9"}, all: true},
}

// hurtHeads lets three records say another queue offset, queue or topic than theirs: what no checksum covers.
func hurtHeads(t *testing.T, root string) {
	t.Helper()
	hurt := map[string]func(rec message.View){
		"CrashA/0/5":  func(rec message.View) { rec[27]++ },
		"CrashA/1/17": func(rec message.View) { rec[15] = 9 },
		"CrashB/0/21": func(rec message.View) { rec[len(rec)-2-len(rec.Properties())-1] = 'X' },
	}
	d, err := inspect.Open(root, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	changed := map[int64][]byte{}
	_, err = d.Log().Walk(context.Background(), inspect.WalkOptions{}, func(phys int64, v message.View) error {
		if change := hurt[fmt.Sprintf("%s/%d/%d", v.Topic(), v.QueueID(), v.QueueOffset())]; change != nil {
			changed[phys] = bytes.Clone(v)
			change(changed[phys])
		}
		return nil
	})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	if len(changed) != len(hurt) {
		t.Fatalf("%d of the %d records were found", len(changed), len(hurt))
	}
	const size = 131072
	for phys, rec := range changed {
		f, err := os.OpenFile(filepath.Join(root, "commitlog", fmt.Sprintf("%020d", phys-phys%size)), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(rec, phys%size)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// firstOnes are so many messages from the beginning of each queue.
func firstOnes(counts map[string]int) []string {
	var out []string
	for q, n := range counts {
		for i := range n {
			out = append(out, fmt.Sprintf("%s/%d", q, i))
		}
	}
	return out
}

// span30 are the messages of the log file that is missing.
func span30() []string {
	var out []string
	for q, first := range map[string]int{"CrashA/0": 19, "CrashA/1": 18, "CrashB/0": 18} {
		for n := range 10 {
			out = append(out, fmt.Sprintf("%s/%d", q, first+n))
		}
	}
	return out
}

// A store that was damaged and repaired: Apache's broker and mqx start on it and serve every message that was not damaged,
// at its offset, and nothing else.
func TestRepairedStoresAreServed(t *testing.T) {
	t.Parallel()
	for variant, want := range repairs {
		if want.all && os.Getenv("MQX_E2E_ALL") == "" {
			continue
		}
		for name, broker := range map[string]func(*testing.T, brokerSpec) *process{"Apache": apacheBroker, "mqx": mqxBroker} {
			if name == "Apache" && os.Getenv("MQX_E2E_ALL") == "" && !slices.Contains(repairsByApache, variant) {
				continue
			}
			t.Run(variant+" "+name, func(t *testing.T) {
				golden := cmp.Or(want.golden, variant)
				root := testkit.GoldenStore(t, golden)
				if want.damage != nil {
					want.damage(t, root)
				}
				plan := mqx(t, "store", "repair", root, "--confirm", filepath.Base(root), "--consumequeue-file-size", "6000", "--index-slots", "1000", "--index-entries", "4000")
				if !strings.Contains(plan, want.step) {
					t.Errorf("no step %s: %s", want.step, plan)
				}
				mqx(t, "store", "verify", root)
				serveRepaired(t, root, golden, want.lost, broker)
				mqx(t, "store", "verify", root)
			})
		}
	}
}

func serveRepaired(t *testing.T, root, variant string, lost []string, broker func(*testing.T, brokerSpec) *process) {
	t.Helper()
	nsPort, brPort := freePort(t), freePort(t)
	namesrv := loopback(nsPort)
	ns := mqxNameserver(t, nsPort)
	ns.cleanup(t)
	p := broker(t, brokerSpec{port: brPort, namesrv: namesrv, store: root, extra: []string{"mappedFileSizeCommitLog=131072"}})
	p.cleanup(t)
	waitRegistered(t, namesrv)
	var want, got []string
	for _, q := range testkit.GoldenManifest(t, variant).BeforeDamage.ClientView.Queues {
		if q.Topic != "CrashA" && q.Topic != "CrashB" {
			continue
		}
		for _, m := range q.Messages {
			key := fmt.Sprintf("%s/%d/%d", q.Topic, q.QueueID, m.QueueOffset)
			if !slices.Contains(lost, key) {
				want = append(want, key+" "+m.MsgID)
			}
		}
	}
	for _, topic := range []string{"CrashA", "CrashB"} {
		waitTopic(t, namesrv, topic)
		for _, m := range sharedDriver(t).pull(t, namesrv, topic, "") {
			got = append(got, fmt.Sprintf("%s/%d/%d %s", m.Topic, m.QueueID, m.QueueOffset, m.MsgID))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", clip(diff))
	}
	_ = p.stop(t, stopLimit) // a JVM ends with 143
}
