package message_test

import (
	"bytes"
	"net/netip"
	"testing"

	"mqx/internal/clock"
	"mqx/message"
)

func BenchmarkEncode(b *testing.B) {
	for _, bb := range []struct {
		name    string
		body    int
		propCRC bool
	}{{"128", 128, false}, {"1K", 1024, false}, {"64K", 64 << 10, false}, {"1K checksum", 1024, true}} {
		b.Run(bb.name, func(b *testing.B) {
			rec := mustDecode(b, goldenRecord(b))
			rec.Body = bytes.Repeat([]byte{'x'}, bb.body)
			buf := make([]byte, 0, rec.EncodedLen(bb.propCRC))
			b.SetBytes(int64(cap(buf)))
			b.ReportAllocs()
			for b.Loop() {
				out := rec.Append(buf, bb.propCRC)
				message.PatchOffsets(out, 1, 2, 3)
				if bb.propCRC {
					message.SealPropCRC(out)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := goldenRecord(b)
	for _, bb := range []struct {
		name string
		o    message.DecodeOptions
	}{{"plain", message.DecodeOptions{}}, {"verify", message.DecodeOptions{VerifyBodyCRC: true}}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := message.DecodeRecord(raw, bb.o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDispatchFields(b *testing.B) {
	raw := goldenRecord(b)
	b.ReportAllocs()
	for b.Loop() {
		dispatchFields(raw)
	}
}

func BenchmarkProperty(b *testing.B) {
	rec := mustDecode(b, goldenRecord(b))
	for _, name := range []string{message.PropUniqKey, message.PropTags, message.PropDelay} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				message.Property(rec.Properties, name)
			}
		})
	}
}

func BenchmarkParseProperties(b *testing.B) {
	rec := mustDecode(b, goldenRecord(b))
	b.ReportAllocs()
	for b.Loop() {
		message.ParseProperties(rec.Properties)
	}
}

func BenchmarkSplitBatch(b *testing.B) {
	rec := mustDecode(b, goldenRecord(b))
	var body []byte
	for range 100 {
		body = message.AppendBatchItem(body, 0, rec.Body, rec.Properties)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range message.SplitBatch(body) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkJavaHash(b *testing.B) {
	for _, s := range []string{"TagA", "C000020272F74E0E2F2A9518AA780000", "属性😀属性"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				message.JavaHash([]byte(s))
			}
		})
	}
}

func BenchmarkUniqueID(b *testing.B) {
	g := message.NewIDGenerator(netip.MustParseAddr("192.0.2.1"), 1, clock.System)
	var buf [message.IDLenV6]byte
	b.ReportAllocs()
	for b.Loop() {
		g.AppendNext(buf[:0])
	}
}

func BenchmarkOffsetID(b *testing.B) {
	var buf [message.IDLenV6]byte
	b.ReportAllocs()
	for b.Loop() {
		message.AppendOffsetID(buf[:0], hostV4, 1<<40)
	}
}

func BenchmarkCompression(b *testing.B) {
	body := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog; "), 200)
	for _, method := range methods {
		b.Run("compress "+method.String(), func(b *testing.B) {
			buf := make([]byte, 0, 2*len(body))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := message.Compress(buf, body, method, message.CompressionDefaultLevel); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("decompress "+method.String(), func(b *testing.B) {
			packed := compressed(b, method, string(body))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := message.Decompress(packed, method.SysFlag(), len(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
