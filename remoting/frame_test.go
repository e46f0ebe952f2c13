package remoting

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

func TestFrameLen(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   []byte
		n    int
		ok   bool
		err  error
	}{
		{"nothing yet", nil, 0, false, nil},
		{"half a length", []byte{0, 0, 0}, 0, false, nil},
		{"length only", []byte{0, 0, 0, 9}, 13, true, nil},
		{"largest", []byte{0x00, 0xff, 0xff, 0xfc}, MaxFrame, true, nil},
		{"too large", []byte{0x00, 0xff, 0xff, 0xfd}, 0, true, ErrFrameTooLarge},
		{"an HTTP request", []byte("GET / HTTP/1.1"), 0, true, ErrFrameTooLarge},
		{"negative", []byte{0xff, 0xff, 0xff, 0xff}, 0, true, ErrFrameNegative},
		{"no room for the header length", []byte{0, 0, 0, 3}, 0, true, ErrFrameTooShort},
	} {
		n, ok, err := FrameLen(tc.in)
		if n != tc.n || ok != tc.ok || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d, %v, %v; want %d, %v, %v", tc.name, n, ok, err, tc.n, tc.ok, tc.err)
		}
	}
}

// frameOf puts a frame around a header and a body.
func frameOf(s byte, header, body string) []byte {
	f := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	f = append(f, s, byte(len(header)>>16), byte(len(header)>>8), byte(len(header)))
	return append(append(f, header...), body...)
}

func TestDecodeRefusesBrokenFrames(t *testing.T) {
	good := frameOf(0, `{"code":1}`, "body")
	headerBeyond := append([]byte(nil), good...)
	headerBeyond[7] = 200
	var headerErr *HeaderError
	for _, tc := range []struct {
		name string
		in   []byte
		want error
	}{
		{"empty", nil, ErrFrameTooShort},
		{"cut", good[:len(good)-1], ErrFrameTooShort},
		{"more than one frame", append(append([]byte(nil), good...), 0), ErrFrameTooShort},
		{"header beyond the frame", headerBeyond, ErrFrameTooShort},
		{"unknown serialize type", frameOf(2, `{"code":1}`, ""), ErrUnknownSerialize},
		{"header too large", frameOf(0, `{"remark":"`+strings.Repeat("x", MaxHeader)+`"}`, ""), ErrHeaderTooLarge},
	} {
		var c Command
		if err := c.Decode(tc.in); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
	var c Command
	if err := c.Decode(frameOf(0, `not json`, "")); !errors.As(err, &headerErr) || headerErr.Serialize != SerializeJSON {
		t.Errorf("garbage: %v", err)
	}
}

func TestAppendFrameRefusesWhatDoesNotFit(t *testing.T) {
	big := &Command{Body: make([]byte, MaxFrame)}
	if out, err := big.AppendFrame([]byte("kept"), SerializeJSON); !errors.Is(err, ErrFrameTooLarge) || string(out) != "kept" {
		t.Errorf("body beyond the frame: %q, %v", out, err)
	}
	wide := &Command{Code: ReqPopMessage}
	if _, err := wide.AppendFrame(nil, SerializeROCKETMQ); !errors.Is(err, ErrCodeTooWide) {
		t.Errorf("wide code: %v", err)
	}
	long := &Command{}
	long.Fields.Set(strings.Repeat("k", 40000), "v")
	if _, err := long.AppendFrame(nil, SerializeROCKETMQ); !errors.Is(err, ErrFieldTooLong) {
		t.Errorf("long name: %v", err)
	}
	header := &Command{}
	header.Fields.Set("k", strings.Repeat("v", MaxHeader))
	for _, s := range []Serialize{SerializeJSON, SerializeROCKETMQ} {
		if _, err := header.AppendFrame(nil, s); !errors.Is(err, ErrHeaderTooLarge) {
			t.Errorf("%s header beyond the limit: %v", s, err)
		}
	}
	header.Flag = FlagResponse
	for _, s := range []Serialize{SerializeJSON, SerializeROCKETMQ} {
		frame, err := header.AppendFrame(nil, s)
		var c Command
		if err != nil || c.DecodeReply(frame) != nil || len(c.Fields.String("k")) != MaxHeader {
			t.Errorf("%s response with a large header: %v", s, err)
		}
		if err := c.Decode(frame); !errors.Is(err, ErrHeaderTooLarge) {
			t.Errorf("%s response with a large header where requests are read: %v", s, err)
		}
	}
	if _, err := (&Command{}).AppendFrame(nil, 7); !errors.Is(err, ErrUnknownSerialize) {
		t.Errorf("unknown serialize type: %v", err)
	}
}

func TestGatheredFrameEqualsWholeFrame(t *testing.T) {
	c := NewRequest(ReqHeartBeat, nil)
	c.Body = []byte(`{"clientID":"x"}`)
	whole, err := c.AppendFrame(nil, SerializeJSON)
	if err != nil {
		t.Fatal(err)
	}
	head, err := c.AppendFrameHeader(nil, SerializeJSON, len(c.Body))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(head) + string(c.Body); got != string(whole) {
		t.Errorf("gathered %q, whole %q", got, whole)
	}
}

func TestResetKeepsNothingButBuffers(t *testing.T) {
	var c Command
	if err := c.Decode(frameOf(0, `{"code":5,"remark":"r","extFields":{"a":"\u0001"}}`, "b")); err != nil {
		t.Fatal(err)
	}
	c.Reset()
	if c.Code != 0 || c.Remark != "" || len(c.Fields) != 0 || c.Body != nil || c.EmptyFields {
		t.Errorf("after Reset: %+v", c)
	}
	if cap(c.Fields) == 0 {
		t.Error("Reset lost the field buffer")
	}
}
