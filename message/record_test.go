package message_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mqx/message"
)

var (
	hostV4 = netip.MustParseAddrPort("192.0.2.1:30911")
	hostV6 = netip.MustParseAddrPort("[2001:db8::1]:30911")
)

func sample() message.Record {
	return message.Record{
		QueueID: 3, Flag: 7, QueueOffset: 11, PhysicalOffset: 1 << 40, SysFlag: message.TransactionCommit,
		BornTimestamp: 1795992621689, BornHost: hostV4, StoreTimestamp: 1795992621816, StoreHost: hostV4,
		ReconsumeTimes: 2, PreparedTransactionOffset: 99,
		Body: []byte("body"), Topic: []byte("TopicA"), Properties: []byte("KEYS\x01k\x02TAGS\x01t\x02"),
	}
}

func mustDecode(t testing.TB, b []byte) message.Record {
	t.Helper()
	rec, err := message.DecodeRecord(b, message.DecodeOptions{VerifyBodyCRC: true})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func drawRecord(t *rapid.T) message.Record {
	host := rapid.Custom(func(t *rapid.T) netip.AddrPort {
		port := rapid.Uint16().Draw(t, "port")
		if rapid.Bool().Draw(t, "v6") {
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ip"))), port)
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip"))), port)
	})
	rec := message.Record{
		QueueID: rapid.Int32().Draw(t, "queue"), Flag: rapid.Int32().Draw(t, "flag"),
		QueueOffset: rapid.Int64().Draw(t, "queue offset"), PhysicalOffset: rapid.Int64().Draw(t, "physical offset"),
		SysFlag: rapid.Int32().Draw(t, "sysFlag"), BornTimestamp: rapid.Int64().Draw(t, "born"),
		BornHost: host.Draw(t, "born host"), StoreTimestamp: rapid.Int64().Draw(t, "stored"),
		StoreHost: host.Draw(t, "store host"), ReconsumeTimes: rapid.Int32().Draw(t, "reconsume"),
		PreparedTransactionOffset: rapid.Int64().Draw(t, "prepared"),
		Body:                      rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body"),
		Topic:                     rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "topic"),
		Properties:                rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "properties"),
	}
	if rapid.Bool().Draw(t, "v2") {
		rec.Magic = message.MagicV2
	}
	return rec
}

// What is encoded decodes to the same, and encodes to the same bytes again.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawRecord(t)
		raw := in.Append(nil, false)
		if len(raw) != in.EncodedLen(false) {
			t.Fatalf("%d bytes, want %d", len(raw), in.EncodedLen(false))
		}
		got, err := message.DecodeRecord(append(bytes.Clone(raw), "more"...), message.DecodeOptions{VerifyBodyCRC: true})
		if err != nil {
			t.Fatal(err)
		}
		want := in
		want.Size, want.BodyCRC, want.Magic = int32(len(raw)), message.BodyCRC(in.Body), message.MagicV1
		if in.Magic == message.MagicV2 || len(in.Topic) > 127 {
			want.Magic = message.MagicV2
		}
		want.SysFlag = got.SysFlag
		want.BornHost = hostAsStored(in.BornHost, got.SysFlag&message.FlagBornHostV6 != 0)
		want.StoreHost = hostAsStored(in.StoreHost, got.SysFlag&message.FlagStoreHostV6 != 0)
		if !equalRecords(&want, &got) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		const v6 = message.FlagBornHostV6 | message.FlagStoreHostV6
		if got.SysFlag&^v6 != in.SysFlag&^v6 || in.SysFlag&^got.SysFlag != 0 {
			t.Fatalf("system flag %#x from %#x", got.SysFlag, in.SysFlag)
		}
		if again := got.Append(nil, false); !bytes.Equal(again, raw) {
			t.Fatal("encodes to other bytes")
		}
	})
}

// hostAsStored is what comes back of an address.
func hostAsStored(host netip.AddrPort, v6 bool) netip.AddrPort {
	if v6 {
		return netip.AddrPortFrom(netip.AddrFrom16(host.Addr().As16()), host.Port())
	}
	return netip.AddrPortFrom(host.Addr().Unmap(), host.Port())
}

// A sealed record verifies; with any bit flipped before the checksum it does not.
func TestPropCRC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawRecord(t)
		raw := in.Append(nil, true)
		if len(raw) != in.EncodedLen(true) {
			t.Fatalf("%d bytes, want %d", len(raw), in.EncodedLen(true))
		}
		message.PatchOffsets(raw, 1, 2, 3)
		message.SealPropCRC(raw)
		o := message.DecodeOptions{VerifyBodyCRC: true, VerifyPropCRC: true}
		rec, err := message.DecodeRecord(raw, o)
		if err != nil {
			t.Fatal(err)
		}
		if rec.QueueOffset != 1 || rec.PhysicalOffset != 2 || rec.StoreTimestamp != 3 {
			t.Fatalf("patched to %d, %d, %d", rec.QueueOffset, rec.PhysicalOffset, rec.StoreTimestamp)
		}
		if again := rec.Append(nil, true); len(again) != len(raw) {
			t.Fatalf("checksum property doubled: %d bytes, want %d", len(again), len(raw))
		}
		bit := rapid.IntRange(0, 8*(len(raw)-message.PropCRCLen)-1).Draw(t, "bit")
		raw[bit/8] ^= 1 << (bit % 8)
		if _, err := message.DecodeRecord(raw, o); err == nil {
			t.Fatalf("bit %d flipped and still valid", bit)
		}
	})
}

func TestPropCRCTail(t *testing.T) {
	for _, tt := range []struct{ props, want string }{
		{"", ""},
		{"k\x01v\x02", "k\x01v\x02"},
		{"k\x01v", "k\x01v\x02"},
		{"k\x01v\x02__CRC32#\x011234567890\x02", "k\x01v\x02"},
		{"__CRC32#\x011234567890\x02k\x01v", "k\x01v\x02"},
		{"__CRC32#\x011\x02k\x01v\x02__CRC32#\x011234567890\x02", "k\x01v\x02"},
		{"x__CRC32#\x011234567890\x02", "x__CRC32#\x011234567890\x02"},
	} {
		rec := sample()
		rec.Properties = []byte(tt.props)
		raw := rec.Append(nil, true)
		message.SealPropCRC(raw)
		got := mustDecode(t, raw).Properties
		if len(got) < message.PropCRCLen || string(got[:len(got)-message.PropCRCLen]) != tt.want {
			t.Errorf("%q becomes %q, want %q and a checksum", tt.props, got, tt.want)
		}
		if !message.HasPropCRC(raw) {
			t.Errorf("%q: no checksum property", tt.props)
		}
	}
	rec := sample()
	raw := rec.Append(nil, false)
	if message.HasPropCRC(raw) {
		t.Error("a checksum property out of nothing")
	}
	var corrupt *message.CorruptError
	_, err := message.DecodeRecord(raw, message.DecodeOptions{VerifyPropCRC: true})
	if !errors.As(err, &corrupt) || corrupt.What != message.CorruptPropCRCNone {
		t.Errorf("record without checksum property: %v", err)
	}
}

// Apache takes version 2 for topics of more than 127 characters.
func TestVersionByTopicLength(t *testing.T) {
	for _, tt := range []struct {
		topic string
		magic int32
		want  int32
	}{
		{strings.Repeat("t", 127), 0, message.MagicV1},
		{strings.Repeat("t", 128), 0, message.MagicV2},
		{strings.Repeat("t", 128), message.MagicV1, message.MagicV2},
		{"t", message.MagicV2, message.MagicV2},
		{strings.Repeat("t", math.MaxInt16), 0, message.MagicV2},
	} {
		rec := sample()
		rec.Topic, rec.Magic = []byte(tt.topic), tt.magic
		got := mustDecode(t, rec.Append(nil, false))
		if got.Magic != tt.want || string(got.Topic) != tt.topic {
			t.Errorf("topic of %d characters, magic %d: magic %d, topic of %d", len(tt.topic), tt.magic, got.Magic, len(got.Topic))
		}
	}
}

func TestRecordLimits(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*message.Record)
		propCRC bool
		want    string
	}{
		{"fits", func(*message.Record) {}, false, ""},
		{"topic fits", func(r *message.Record) { r.Topic = make([]byte, 32767) }, false, ""},
		{"topic", func(r *message.Record) { r.Topic = make([]byte, 32768) }, false, "record: topic takes 32768 bytes, the limit is 32767"},
		{"properties fit", func(r *message.Record) { r.Properties = make([]byte, 32767) }, false, ""},
		{"properties", func(r *message.Record) { r.Properties = make([]byte, 32768) }, false, "record: properties takes 32768 bytes, the limit is 32767"},
		{
			"properties with checksum fit",
			func(r *message.Record) { r.Properties = bytes.Repeat([]byte{2}, 32767-message.PropCRCLen) }, true, "",
		},
		{
			"properties with checksum",
			func(r *message.Record) { r.Properties = make([]byte, 32767-message.PropCRCLen) }, true,
			"record: properties takes 32768 bytes with the checksum property, the limit is 32767",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := sample()
			tt.change(&rec)
			got := ""
			if err := rec.Check(tt.propCRC); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			defer func() {
				if p := recover(); (p != nil) != (tt.want != "") {
					t.Errorf("Append panics with %v", p)
				}
			}()
			mustDecode(t, rec.Append(nil, tt.propCRC))
		})
	}
}

func TestZeroHosts(t *testing.T) {
	rec := sample()
	rec.BornHost, rec.StoreHost = netip.AddrPort{}, netip.AddrPort{}
	if got := mustDecode(t, rec.Append(nil, false)); got.BornHost.String() != "0.0.0.0:0" {
		t.Errorf("zero address becomes %v", got.BornHost)
	}
	rec.SysFlag |= message.FlagBornHostV6
	got := mustDecode(t, rec.Append(nil, false))
	if got.BornHost.String() != "[::]:0" || got.StoreHost.String() != "0.0.0.0:0" {
		t.Errorf("zero addresses become %v and %v", got.BornHost, got.StoreHost)
	}
}

// One field of a good record of 115 bytes is changed at a time.
func TestCorruptRecords(t *testing.T) {
	const (
		bodyLenAt   = 84
		topicLenAt  = bodyLenAt + 4 + 4
		propsLenEnd = 14 + 2
	)
	put32 := func(at int, v int32) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
	}
	put16 := func(fromEnd int, v int16) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint16(b[len(b)-fromEnd:], uint16(v)) }
	}
	size := int64(91 + 4 + 6 + 14)
	for _, tt := range []struct {
		name   string
		change func([]byte)
		want   error
	}{
		{"good", func([]byte) {}, nil},
		{"zeros", func(b []byte) { clear(b) }, &message.CorruptError{What: message.CorruptMagic, Want: int64(message.MagicV1)}},
		{"magic", put32(4, 1), &message.CorruptError{What: message.CorruptMagic, Want: int64(message.MagicV1), Got: 1}},
		{"size negative", put32(0, -1), &message.CorruptError{What: message.CorruptSize, Want: 91, Got: -1}},
		{"size minimal", put32(0, math.MinInt32), &message.CorruptError{What: message.CorruptSize, Want: 91, Got: math.MinInt32}},
		{"size too small for anything", put32(0, 90), &message.CorruptError{What: message.CorruptSize, Want: 91, Got: 90}},
		{"size one less", put32(0, int32(size-1)), &message.CorruptError{What: message.CorruptPropsLen, Want: 13, Got: 14}},
		{"size beyond", put32(0, int32(size+1)), message.ErrShort},
		{"size far beyond", put32(0, math.MaxInt32), message.ErrShort},
		{"body negative", put32(bodyLenAt, -1), &message.CorruptError{What: message.CorruptBodyLen, Want: 24, Got: -1}},
		{"body minimal", put32(bodyLenAt, math.MinInt32), &message.CorruptError{What: message.CorruptBodyLen, Want: 24, Got: math.MinInt32}},
		{"body too long", put32(bodyLenAt, 25), &message.CorruptError{What: message.CorruptBodyLen, Want: 24, Got: 25}},
		{"body maximal", put32(bodyLenAt, math.MaxInt32), &message.CorruptError{What: message.CorruptBodyLen, Want: 24, Got: math.MaxInt32}},
		{"topic negative", func(b []byte) { b[topicLenAt] = 0x80 }, &message.CorruptError{What: message.CorruptTopicLen, Want: 20, Got: -128}},
		{"topic too long", func(b []byte) { b[topicLenAt] = 21 }, &message.CorruptError{What: message.CorruptTopicLen, Want: 20, Got: 21}},
		{"properties negative", put16(propsLenEnd, -1), &message.CorruptError{What: message.CorruptPropsLen, Want: 14, Got: -1}},
		{"properties too long", put16(propsLenEnd, 15), &message.CorruptError{What: message.CorruptPropsLen, Want: 14, Got: 15}},
		{"properties too short", put16(propsLenEnd, 13), &message.CorruptError{What: message.CorruptSize, Want: size - 1, Got: size}},
		{"body", func(b []byte) { b[bodyLenAt+4] ^= 1 }, &message.CorruptError{What: message.CorruptBodyCRC, Want: 1537739698}},
		{"version 2 with a length of version 1", put32(4, message.MagicV2), &message.CorruptError{What: message.CorruptTopicLen, Want: 19, Got: 6<<8 | 'T'}},
		{"blank", put32(4, message.MagicBlank), message.ErrBlank},
		{"blank too small", func(b []byte) { put32(0, 7)(b); put32(4, message.MagicBlank)(b) }, &message.CorruptError{What: message.CorruptSize, Want: 8, Got: 7}},
		{"hosts that do not fit", func(b []byte) { put32(36, 0x30)(b[:92]); put32(0, 92)(b) }, &message.CorruptError{What: message.CorruptSize, Want: 115, Got: 92}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := sample()
			raw := rec.Append(nil, false)
			tt.change(raw)
			_, err := message.DecodeRecord(raw, message.DecodeOptions{VerifyBodyCRC: true})
			var want, got *message.CorruptError
			if errors.As(tt.want, &want) && errors.As(err, &got) {
				if want.What == message.CorruptBodyCRC {
					got.Want, got.Got = want.Want, want.Got
				}
				if *want != *got {
					t.Errorf("%v, want %v", got, want)
				}
				return
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// A record that is cut off anywhere asks for more bytes, and never reads beyond what there is.
func TestShortRecord(t *testing.T) {
	rec := sample()
	raw := rec.Append(nil, false)
	for n := range raw {
		if _, err := message.DecodeRecord(raw[:n:n], message.DecodeOptions{}); !errors.Is(err, message.ErrShort) {
			t.Fatalf("%d of %d bytes: %v", n, len(raw), err)
		}
	}
}

func TestPeekRecord(t *testing.T) {
	rec := sample()
	raw := rec.Append(nil, false)
	size, magic, err := message.PeekRecord(raw[:8])
	if int(size) != len(raw) || magic != message.MagicV1 || err != nil {
		t.Errorf("record: %d, %d, %v", size, magic, err)
	}
	size, magic, err = message.PeekRecord(message.AppendBlank(nil, 1875))
	if size != 1875 || magic != message.MagicBlank || err != nil {
		t.Errorf("blank: %d, %d, %v", size, magic, err)
	}
	if _, _, err := message.PeekRecord(raw[:7]); !errors.Is(err, message.ErrShort) {
		t.Errorf("7 bytes: %v", err)
	}
}

func TestSkipBody(t *testing.T) {
	rec := sample()
	raw := rec.Append(nil, false)
	got, err := message.DecodeRecord(raw, message.DecodeOptions{SkipBody: true, VerifyBodyCRC: true})
	if err != nil || got.Body != nil || string(got.Topic) != "TopicA" {
		t.Errorf("body %q, topic %q, %v", got.Body, got.Topic, err)
	}
}

func TestSealWithoutRoom(t *testing.T) {
	rec := sample()
	raw := rec.Append(nil, false)
	before := bytes.Clone(raw)
	defer func() {
		if recover() == nil || !bytes.Equal(raw, before) {
			t.Error("properties are written over")
		}
	}()
	message.SealPropCRC(raw)
}

func TestBlankOfNothing(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a blank of 7 bytes is written")
		}
	}()
	message.AppendBlank(nil, 7)
}

func TestErrorTexts(t *testing.T) {
	rec := sample()
	raw := rec.Append(nil, false)
	raw[88] ^= 1
	_, err := message.DecodeRecord(raw, message.DecodeOptions{VerifyBodyCRC: true})
	if !message.IsCorrupt(err) || message.IsCorrupt(message.ErrShort) || message.IsCorrupt(nil) {
		t.Errorf("IsCorrupt: %v", err)
	}
	if d := cmp.Diff("record: body CRC: want 1537739698, got ", err.Error()[:strings.LastIndex(err.Error(), " ")+1]); d != "" {
		t.Error(d)
	}
}

func TestViewOfHosts(t *testing.T) {
	for _, tt := range []struct{ born, store netip.AddrPort }{
		{hostV4, hostV4}, {hostV4, hostV6}, {hostV6, hostV4}, {hostV6, hostV6},
	} {
		rec := sample()
		rec.BornHost, rec.StoreHost = tt.born, tt.store
		raw := rec.Append(nil, false)
		message.PatchOffsets(raw, 5, 6, 7)
		v, err := message.ParseView(raw, message.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if v.BornHost() != tt.born || v.StoreHost() != tt.store || v.StoreTimestamp() != 7 || v.QueueOffset() != 5 ||
			v.PhysicalOffset() != 6 || string(v.Topic()) != "TopicA" || v.ReconsumeTimes() != 2 {
			t.Errorf("%v, %v: %v, %v, stored %d", tt.born, tt.store, v.BornHost(), v.StoreHost(), v.StoreTimestamp())
		}
		if key, ok := v.Property(message.PropKeys); string(key) != "k" || !ok {
			t.Errorf("key %q, %v", key, ok)
		}
	}
}
