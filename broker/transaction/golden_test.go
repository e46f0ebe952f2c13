package transaction

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/message"
)

// goldenRecords are the records of a golden store in the order of the log.
func goldenRecords(t *testing.T, variant string) []message.View {
	t.Helper()
	root := testkit.GoldenStore(t, variant)
	log := testkit.GoldenCommitLog(t, root)
	var out []message.View
	for _, r := range testkit.GoldenManifest(t, variant).StoreView.CommitLogRecords {
		if r.IsBlank() {
			continue
		}
		out = append(out, message.View(log.From(r.Offset())[:r.Len()]))
	}
	return out
}

var transVariants = []string{"trans", "trans_running", "master_mixed_j1", "slave_j1"}

// encoded is the record as the log would write it at the place of another.
func encoded(r *message.Record, at message.View) []byte {
	b := r.Append(nil, false)
	message.PatchOffsets(b, at.QueueOffset(), at.PhysicalOffset(), at.StoreTimestamp())
	return b
}

// The records that are built here are, byte for byte, those that Apache built
// of the same half messages.
func TestGoldenRecords(t *testing.T) {
	kinds := map[string]int{}
	for _, variant := range transVariants {
		t.Run(variant, func(t *testing.T) {
			last := map[string]message.View{} // half messages by unique key, the newest
			byPhys := map[int64]message.View{}
			for _, rec := range goldenRecords(t, variant) {
				switch {
				case string(rec.Topic()) == message.TopicHalf:
					h, err := ParseHalf(rec)
					if err != nil {
						t.Fatal(err)
					}
					if before := last[string(h.UniqKey)]; before != nil {
						was, _ := ParseHalf(before)
						r := CheckedRecord(before, &was)
						same(t, "checked", encoded(&r, rec), rec)
						kinds["checked"]++
					} else {
						sameHalf(t, rec, &h)
						kinds["half"]++
					}
					last[string(h.UniqKey)], byPhys[rec.PhysicalOffset()] = rec, rec
				case string(rec.Topic()) == message.TopicHalfOp:
					r := OpRecord(rec.Body(), rec.BornTimestamp())
					r.BornHost, r.StoreHost = rec.BornHost(), rec.StoreHost()
					same(t, "op", encoded(&r, rec), rec)
					kinds["op"]++
				case rec.Transaction() == message.TransactionCommit:
					half := byPhys[rec.PreparedTransactionOffset()]
					h, err := ParseHalf(half)
					if err != nil {
						t.Fatal(err)
					}
					r := CommitRecord(half, &h)
					want := message.DeleteProperty(append([]byte(nil), rec.Properties()...), message.PropTransactionCheckTimes)
					if d := cmp.Diff(string(want), string(r.Properties)); d != "" {
						t.Errorf("properties of a commit: %s", d)
					}
					r.Properties = rec.Properties()
					same(t, "commit", encoded(&r, rec), rec)
					kinds["commit"]++
				}
			}
		})
	}
	for _, kind := range []string{"half", "checked", "op", "commit"} {
		if kinds[kind] == 0 {
			t.Errorf("no golden record of kind %s: %v", kind, kinds)
		}
	}
	t.Log(kinds)
}

func same(t *testing.T, what string, got []byte, want message.View) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s at %d:\n%q\n%q", what, want.PhysicalOffset(), got, []byte(want))
	}
}

// sameHalf rebuilds a half message from what its producer sent, in another
// order, and what the broker adds to every message.
func sameHalf(t *testing.T, rec message.View, h *Half) {
	t.Helper()
	sent := append([]byte(nil), rec.Properties()...)
	for _, name := range []string{message.PropRealTopic, message.PropRealQueueID, message.PropTransactionID} {
		sent = message.DeleteProperty(sent, name)
	}
	pairs := strings.SplitAfter(strings.TrimSuffix(string(sent), "\x02"), "\x02")
	slices.SortFunc(pairs, func(a, b string) int {
		if aOwn, bOwn := strings.HasPrefix(a, message.PropCluster), strings.HasPrefix(b, message.PropCluster); aOwn != bOwn {
			return map[bool]int{true: 1, false: -1}[aOwn]
		}
		return strings.Compare(b, a)
	})
	for i, p := range pairs {
		pairs[i] = strings.TrimSuffix(p, "\x02") + "\x02"
	}
	r := copyOf(rec)
	r.Topic, r.QueueID, r.SysFlag = h.RealTopic, h.RealQueue, r.SysFlag|message.TransactionPrepared
	HalfRecord(&r, AppendHalfProperties(nil, []byte(strings.Join(pairs, "")), h.UniqKey, string(h.RealTopic), h.RealQueue))
	same(t, "half", encoded(&r, rec), rec)
}

// The body of a check is the one that Apache's broker sent.
func TestGoldenCheckBody(t *testing.T) {
	n := 0
	for _, name := range []string{"java_transaction_JSON", "java_transaction_ROCKETMQ", "go_trans_JSON"} {
		for _, f := range testkit.GoldenWire(t, name) {
			if f.Kind != "frame" || f.Dir != "s2c" || f.Code != 39 || f.Type == "response" {
				continue
			}
			body := f.Raw[len(f.Raw)-f.BodyLen:]
			rec := message.View(body)
			h, err := ParseHalf(rec)
			if err != nil {
				t.Fatal(err)
			}
			r := copyOf(rec)
			r.Topic, r.Properties = halfTopic, message.AppendJavaOrder(nil, rec.Properties())
			if got := CheckBody(&r, &h, rec.QueueOffset(), rec.PhysicalOffset()); !bytes.Equal(got, body) {
				t.Errorf("%s: frame %d:\n%q\n%q", name, f.Seq, got, body)
			}
			n++
		}
	}
	if n == 0 {
		t.Error("no check was recorded")
	}
}

// What Apache left in its two topics is read the way Apache reads it.
func TestGoldenBook(t *testing.T) {
	for _, variant := range []string{"trans", "trans_running"} {
		b := NewBook(0, 0)
		recs := goldenRecords(t, variant)
		var end int64
		for _, rec := range recs {
			if string(rec.Topic()) == message.TopicHalf {
				end = rec.QueueOffset() + 1
			}
		}
		ended := map[int64]bool{}
		for _, rec := range recs {
			if string(rec.Topic()) == message.TopicHalfOp {
				if bad := b.LoadOp(rec.QueueOffset(), rec, end); bad > 0 {
					t.Errorf("%d entries make no sense in %q", bad, rec.Body())
				}
				for part := range strings.SplitSeq(strings.TrimSuffix(string(rec.Body()), ","), ",") {
					ended[number([]byte(part), 64)] = true
				}
			}
		}
		for off := range end {
			if b.Done(off) != ended[off] {
				t.Errorf("%s: half offset %d: done %v, its op message says %v", variant, off, b.Done(off), ended[off])
			}
		}
	}
}
