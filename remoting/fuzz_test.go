package remoting

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
)

// seedHeaders adds one golden frame a code and serialization.
func seedFrames(f *testing.F, add func(w testkit.WireFrame)) {
	seen := map[[2]any]bool{}
	eachGoldenFrame(f, func(_ string, w testkit.WireFrame) {
		key := [2]any{w.Code, w.Serialize + w.Type}
		if !seen[key] && len(w.Raw) < 4096 {
			seen[key] = true
			add(w)
		}
	})
}

// FuzzFrame: whatever decodes is written again with the same meaning.
func FuzzFrame(f *testing.F) {
	seedFrames(f, func(w testkit.WireFrame) { f.Add(w.Raw) })
	var c, back Command
	f.Fuzz(func(t *testing.T, frame []byte) {
		n, ok, err := FrameLen(frame)
		if err != nil || !ok || n > len(frame) {
			return
		}
		if c.Decode(frame[:n]) == nil {
			checkComesBack(t, &c, &back)
		}
	})
}

// FuzzJSONHeader is FuzzFrame past the length fields, for the JSON header.
func FuzzJSONHeader(f *testing.F) {
	seedFrames(f, func(w testkit.WireFrame) {
		if w.Serialize == "JSON" {
			f.Add(w.Raw[8 : len(w.Raw)-w.BodyLen])
		}
	})
	var c, back Command
	f.Fuzz(func(t *testing.T, header []byte) {
		if c.Decode(frameOf(0, string(header), "")) == nil {
			checkComesBack(t, &c, &back)
		}
	})
}

// FuzzBinaryHeader is FuzzFrame past the length fields, for the ROCKETMQ
// header.
func FuzzBinaryHeader(f *testing.F) {
	seedFrames(f, func(w testkit.WireFrame) {
		if w.Serialize == "ROCKETMQ" {
			f.Add(w.Raw[8 : len(w.Raw)-w.BodyLen])
		}
	})
	var c, back Command
	f.Fuzz(func(t *testing.T, header []byte) {
		if c.Decode(frameOf(1, string(header), "")) == nil {
			checkComesBack(t, &c, &back)
		}
	})
}

// checkComesBack writes c in its own serialization, which must give the same
// meaning (texts that are no UTF-8 aside), and what was written must come back
// to the byte.
func checkComesBack(t *testing.T, c, back *Command) {
	t.Helper()
	first, err := c.AppendFrame(nil, c.Serialize)
	if err != nil {
		if len(first) != 0 {
			t.Fatalf("error %v with %d bytes", err, len(first))
		}
		return // grew beyond a limit
	}
	if err := back.Decode(first); err != nil {
		t.Fatalf("cannot read what was written: %v: %q", err, first)
	}
	if back.Code != c.Code || back.Opaque != c.Opaque || back.Flag != c.Flag || back.Version != c.Version {
		t.Fatalf("%+v came back as %+v", c, back)
	}
	var third Command
	second, err := back.AppendFrame(nil, back.Serialize)
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Decode(second); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meaningOf(back), meaningOf(&third)); diff != "" {
		t.Fatalf("second trip:\n%s", diff)
	}
}

// FuzzRegisterBody: the inflated form of a compressed registration.
func FuzzRegisterBody(f *testing.F) {
	for _, version := range []int32{V4_9_4, Version} {
		body, err := EncodeRegisterBroker(registration(), true, version)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(inflate(f, body), version)
	}
	eachGoldenFrame(f, func(_ string, w testkit.WireFrame) {
		if w.Code == ReqRegisterBroker && w.RequestCode == nil && w.BodyLen > 0 && w.BodyLen < 2048 {
			b, err := DecodeRegisterBroker(w.Raw[len(w.Raw)-w.BodyLen:], false, w.Version)
			if err != nil {
				f.Fatal(err)
			}
			body, err := EncodeRegisterBroker(b, true, w.Version)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(inflate(f, body), w.Version)
		}
	})
	f.Fuzz(func(t *testing.T, plain []byte, version int32) {
		b, err := DecodeRegisterBroker(deflate(t, plain), true, version)
		if err != nil {
			return
		}
		again, err := EncodeRegisterBroker(b, true, Version)
		if err != nil {
			return // nested too deep for us to write
		}
		if _, err := DecodeRegisterBroker(again, true, Version); err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
	})
}

// TestGoldenRegistrationsCompressed sends every golden registration through
// the compressed form.
func TestGoldenRegistrationsCompressed(t *testing.T) {
	n := 0
	eachGoldenFrame(t, func(name string, w testkit.WireFrame) {
		if w.Code != ReqRegisterBroker || w.RequestCode != nil || w.BodyLen == 0 || w.Flag&FlagResponse != 0 {
			return
		}
		n++
		var c Command
		if err := c.Decode(w.Raw); err != nil {
			t.Fatal(err)
		}
		var h RegisterBrokerHeader
		if err := DecodeHeader(c.Fields, &h); err != nil {
			t.Fatal(err)
		}
		if h.BodyCRC32.Value != RegisterBodyCRC(c.Body) {
			t.Errorf("%s seq %d: checksum %d, ours %d", name, w.Seq, h.BodyCRC32.Value, RegisterBodyCRC(c.Body))
		}
		want, err := DecodeRegisterBroker(c.Body, h.Compressed, c.Version)
		if err != nil {
			t.Fatal(err)
		}
		body, err := EncodeRegisterBroker(want, true, c.Version)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRegisterBroker(body, true, c.Version)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(carried(want), carried(got)); diff != "" {
			t.Errorf("%s seq %d (-JSON +compressed):\n%s", name, w.Seq, diff)
		}
	})
	if n < 50 {
		t.Errorf("%d registrations", n)
	}
}

// carried is what the compressed form carries of a registration.
func carried(b *RegisterBrokerBody) *RegisterBrokerBody {
	out := *b
	out.Topics.MappingDataVersion = DataVersion{}
	out.Topics.MappingDetailMap = nil
	out.Topics.TopicConfigTable = map[string]TopicConfig{}
	for name, t := range b.Topics.TopicConfigTable {
		t.TopicSysFlag, t.Order = 0, false
		out.Topics.TopicConfigTable[name] = t
	}
	return &out
}

func inflate(f *testing.F, body []byte) []byte {
	f.Helper()
	plain, err := inflateAll(body)
	if err != nil {
		f.Fatal(err)
	}
	if binary.BigEndian.Uint32(plain) > uint32(len(plain)) {
		f.Fatal("not a registration")
	}
	return plain
}
