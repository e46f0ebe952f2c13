package message_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/message"
)

// seedRecords gives f records of stores that differ in kind, at most so many of each.
func seedRecords(f *testing.F, each int, add func(message.Record, []byte)) {
	f.Helper()
	for _, variant := range []string{
		"basic", "batch", "batchcq", "compress", "crash_torn_tail", "delay_timer", "ipv6", "lmq", "pop", "propcrc", "trans", "v2",
	} {
		log := testkit.GoldenCommitLog(f, testkit.GoldenStore(f, variant))
		records, _ := goldenRecords(testkit.GoldenManifest(f, variant))
		for i := 0; i < len(records); i += 1 + len(records)/each {
			b := log.From(records[i].Offset())
			if records[i].IsBlank() || b == nil {
				continue
			}
			b = b[:records[i].Len()]
			if rec, err := message.DecodeRecord(b, message.DecodeOptions{}); err == nil {
				add(rec, b)
			}
		}
	}
}

// No bytes make the decoder panic or read beyond them, and what decodes encodes to the same bytes.
func FuzzRecord(f *testing.F) {
	seedRecords(f, 6, func(_ message.Record, b []byte) { f.Add(b) })
	f.Add(message.AppendBlank(nil, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, o := range []message.DecodeOptions{{}, {VerifyBodyCRC: true}, {VerifyPropCRC: true}, {SkipBody: true}} {
			rec, err := message.DecodeRecord(b[:len(b):len(b)], o)
			if err != nil {
				if !errors.Is(err, message.ErrShort) && !errors.Is(err, message.ErrBlank) && !message.IsCorrupt(err) {
					t.Fatalf("strange error %v", err)
				}
				continue
			}
			if !o.VerifyBodyCRC {
				continue
			}
			out := rec.Append(nil, false)
			message.PatchOffsets(out, rec.QueueOffset, rec.PhysicalOffset, rec.StoreTimestamp)
			if !sameButPorts(out, b[:rec.Size], &rec) {
				t.Fatalf("%x encodes to %x", b[:rec.Size], out)
			}
		}
		for _, err := range message.DecodeMessages(b, message.ReceiveOptions{BodyLimit: 1 << 16}) {
			_ = err // any will do, as long as nothing panics
		}
	})
}

// sameButPorts compares an encoded record with what it was decoded from. Ports take four bytes of which two count.
func sameButPorts(out, raw []byte, rec *message.Record) bool {
	raw = bytes.Clone(raw)
	if len(out) != len(raw) {
		return false
	}
	at := 48
	for _, bit := range []int32{message.FlagBornHostV6, message.FlagStoreHostV6} {
		ip := 4
		if rec.SysFlag&bit != 0 {
			ip = 16
		}
		clear(raw[at+ip : at+ip+2])
		at += ip + 4 + 8
	}
	return bytes.Equal(out, raw)
}

func FuzzProperties(f *testing.F) {
	seedRecords(f, 6, func(rec message.Record, _ []byte) { f.Add(string(rec.Properties), "KEYS") })
	for _, tt := range propertyTexts {
		f.Add(tt.raw, "k")
	}
	f.Fuzz(func(t *testing.T, raw, name string) {
		props := []byte(raw)
		want := parseLikeJava(raw)
		got := message.ParseProperties(props)
		if len(got) != len(want) {
			t.Fatalf("%q: %v, want %v", raw, got, want)
		}
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("%q: %q is %q, want %q", raw, k, got[k], v)
			}
			if value, ok := message.Property(props, k); string(value) != v || !ok {
				t.Fatalf("%q: Property(%q) is %q, %v", raw, k, value, ok)
			}
		}
		if value, ok := message.Property(props, name); ok != (want[name] != "") || string(value) != want[name] {
			t.Fatalf("%q: Property(%q) is %q, %v", raw, name, value, ok)
		}
		if _, ok := message.Property(message.DeleteProperty(props, name), name); ok {
			t.Fatalf("%q: %q is still there", raw, name)
		}
		if string(props) != raw {
			t.Fatal("the input was changed")
		}
		_ = message.TagsCode(props)
	})
}

func FuzzBatch(f *testing.F) {
	seedRecords(f, 3, func(rec message.Record, _ []byte) {
		if rec.SysFlag&message.FlagInnerBatch != 0 {
			f.Add(rec.Body)
		}
		f.Add(message.AppendBatchItem(nil, rec.Flag, rec.Body, rec.Properties))
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		items := 0
		var again []byte
		for item, err := range message.SplitBatch(body[:len(body):len(body)]) {
			if err != nil {
				if !message.IsCorrupt(err) {
					t.Fatalf("strange error %v", err)
				}
				return
			}
			again = message.AppendBatchItem(again, item.Flag, item.Body, item.Properties)
			items++
		}
		n, err := message.CountBatch(again)
		if n != items || err != nil || len(again) != len(body) {
			t.Fatalf("%d items of %d, %d bytes of %d, %v", n, items, len(again), len(body), err)
		}
	})
}

func FuzzIDs(f *testing.F) {
	seedRecords(f, 3, func(rec message.Record, _ []byte) {
		f.Add(message.FormatOffsetID(rec.StoreHost, rec.PhysicalOffset))
		key, _ := message.Property(rec.Properties, message.PropUniqKey)
		f.Add(string(key))
	})
	const mapped = "00000000000000000000FFFF" // an IPv4 address written as IPv6 is formatted as IPv4
	f.Fuzz(func(t *testing.T, s string) {
		host, phys, err := message.ParseOffsetID(s)
		if err == nil && !strings.HasPrefix(strings.ToUpper(s), mapped) {
			if got := message.FormatOffsetID(host, phys); got != strings.ToUpper(s) {
				t.Fatalf("%s formats to %s", s, got)
			}
		}
		id, err := message.ParseUniqueID(s)
		if err == nil && !strings.HasPrefix(strings.ToUpper(s), mapped) {
			if got := id.String(); got != strings.ToUpper(s) {
				t.Fatalf("%s formats to %s", s, got)
			}
		}
	})
}

// Whatever the bytes are, the output stays within the limit.
func FuzzDecompress(f *testing.F) {
	seedRecords(f, 24, func(rec message.Record, _ []byte) {
		if rec.SysFlag&message.FlagCompressed != 0 {
			f.Add(rec.Body, uint16(rec.SysFlag))
		}
	})
	f.Fuzz(func(t *testing.T, body []byte, sysFlag uint16) {
		const limit = 1 << 16
		got, err := message.Decompress(body, int32(sysFlag)|message.FlagCompressed, limit)
		if len(got) > limit || err != nil && got != nil {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		method := message.CompressionOf(int32(sysFlag))
		out, cerr := message.Compress(nil, got, method, int(sysFlag>>12))
		if err != nil || cerr != nil {
			return
		}
		again, err := message.Decompress(out, method.SysFlag(), limit)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%d bytes come back as %d, %v", len(got), len(again), err)
		}
	})
}
