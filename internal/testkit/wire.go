package testkit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"
)

// Kinds of WireFrame.
const (
	WireOpen       = "open"
	WireEOF        = "eof"
	WireFrameKind  = "frame"       // one remoting frame
	WireHAReport   = "ha-report"   // 8 bytes of a slave
	WireHATransfer = "ha-transfer" // head and body of a master
	WireMark       = "mark"        // a label in Remark
)

// WireFrame is one line of a recorded conversation. The meaning of each field is in golden/wire/README.md.
type WireFrame struct {
	Seq      int    `json:"seq"`
	Time     string `json:"t"`
	Listener string `json:"listener"` // namesrv, namesrv-broker, broker, broker-vip, ha
	Conn     int    `json:"conn"`
	Dir      string `json:"dir"` // c2s from the connecting side, s2c from the accepting side
	Kind     string `json:"kind"`
	Raw      []byte `json:"raw"` // the exact bytes; of a frame from its 4-byte length on
	Len      int    `json:"len"`

	// Of frames, as Apache's decoder gives them.
	Serialize   string            `json:"serialize"` // JSON or ROCKETMQ
	Type        string            `json:"type"`      // request or response
	Code        int32             `json:"code"`
	Opaque      int32             `json:"opaque"`
	Flag        int32             `json:"flag"`
	Language    string            `json:"language"`
	Version     int32             `json:"version"`
	Remark      *string           `json:"remark"`
	ExtFields   map[string]string `json:"extFields"`
	BodyLen     int               `json:"bodyLen"`
	BodySHA256  string            `json:"bodySha256"`
	RequestCode *int32            `json:"requestCode"` // of a response: the code of its request
	DecodeError string            `json:"decodeError"`

	// Of HA records.
	HAOffset   int64 `json:"haOffset"`
	HABodySize int32 `json:"haBodySize"`
}

// GoldenWire returns one recorded conversation, by a name of GoldenWires.
func GoldenWire(t testing.TB, name string) []WireFrame {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(read(t, "wire", name+".jsonl.gz")))
	if err != nil {
		t.Fatalf("golden wire %s: %v", name, err)
	}
	var frames []WireFrame
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var f WireFrame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			t.Fatalf("golden wire %s line %d: %v", name, len(frames)+1, err)
		}
		if len(f.Raw) != f.Len {
			t.Fatalf("golden wire %s line %d: %d raw bytes, not %d", name, len(frames)+1, len(f.Raw), f.Len)
		}
		frames = append(frames, f)
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("golden wire %s: %v", name, err)
	}
	return frames
}

// GoldenWireStdout returns what the client program of a recorded conversation printed.
func GoldenWireStdout(t testing.TB, name string) []byte {
	t.Helper()
	return read(t, "wire", "stdout", name+".stdout.txt")
}
