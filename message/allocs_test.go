package message_test

import (
	"net/netip"
	"testing"

	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/message"
)

// goldenRecord returns the bytes of a record that a client typically sends: keys, tags, a few properties.
func goldenRecord(t testing.TB) []byte {
	t.Helper()
	log := testkit.GoldenCommitLog(t, testkit.GoldenStore(t, "basic"))
	v, err := message.ParseView(log.From(0), message.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The hot path allocates nothing.
func TestNoAllocations(t *testing.T) {
	raw := goldenRecord(t)
	rec := mustDecode(t, raw)
	buf := make([]byte, 0, 4096)
	var body []byte
	for range 10 {
		body = message.AppendBatchItem(body, 1, rec.Body, rec.Properties)
	}
	ids := message.NewIDGenerator(netip.MustParseAddr("192.0.2.1"), 1, clock.System)
	ids.Next()
	var sum int64
	for _, tt := range []struct {
		name string
		f    func()
	}{
		{"encode", func() {
			out := rec.Append(buf[:0], false)
			message.PatchOffsets(out, 1, 2, 3)
		}},
		{"encode with checksum", func() {
			out := rec.Append(buf[:0], true)
			message.PatchOffsets(out, 1, 2, 3)
			message.SealPropCRC(out)
		}},
		{"decode", func() {
			got, err := message.DecodeRecord(raw, message.DecodeOptions{VerifyBodyCRC: true})
			if err != nil {
				panic(err)
			}
			sum += got.QueueOffset
		}},
		{"view", func() { sum += dispatchFields(raw) }},
		{"each property", func() {
			message.EachProperty(rec.Properties, func(name, value []byte) bool {
				sum += int64(len(name) + len(value))
				return true
			})
		}},
		{"property with a long name", func() {
			_, ok := message.Property(rec.Properties, "a name of more than thirty-two bytes, which no property has")
			if ok {
				panic("found")
			}
		}},
		{"split a batch", func() {
			for item, err := range message.SplitBatch(body) {
				if err != nil {
					panic(err)
				}
				sum += int64(len(item.Body))
			}
		}},
		{"append a property", func() { message.AppendProperty(buf[:0], message.PropUniqKey, "value") }},
		{"offset id", func() { message.AppendOffsetID(buf[:0], rec.StoreHost, rec.PhysicalOffset) }},
		{"unique id", func() { ids.AppendNext(buf[:0]) }},
		{"names", func() {
			if message.ValidateTopic("TopicA") != nil || message.ValidateGroup("Group") != nil {
				panic("refused")
			}
		}},
		{"blank", func() { message.AppendBlank(buf[:0], 100) }},
	} {
		if n := testing.AllocsPerRun(100, tt.f); n != 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
	if sum == 0 {
		t.Error("nothing was read")
	}
}

// dispatchFields reads what dispatch needs of a record.
func dispatchFields(raw []byte) int64 {
	v, err := message.ParseView(raw, message.DecodeOptions{})
	if err != nil {
		panic(err)
	}
	props := v.Properties()
	tags, _ := message.Property(props, message.PropTags)
	keys, _ := message.Property(props, message.PropKeys)
	uniq, _ := message.Property(props, message.PropUniqKey)
	return message.TagsCode(tags) + int64(len(keys)+len(uniq)+len(v.Topic())) + v.QueueOffset() + v.PhysicalOffset() +
		v.StoreTimestamp() + int64(v.QueueID()) + int64(v.Transaction()) + int64(v.BornHost().Port())
}
