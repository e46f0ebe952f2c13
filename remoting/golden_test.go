package remoting

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/fastjson"
	"mqx/internal/testkit"
)

// goldenFrame is a recorded remoting frame and the file it is from.
type goldenFrame struct {
	file string
	testkit.WireFrame
}

var golden struct {
	sync.Mutex
	frames []goldenFrame
}

// eachGoldenFrame calls f for every recorded remoting frame.
func eachGoldenFrame(t testing.TB, f func(name string, w testkit.WireFrame)) {
	t.Helper()
	golden.Lock()
	if golden.frames == nil {
		for _, name := range testkit.GoldenWires() {
			for _, w := range testkit.GoldenWire(t, name) {
				if w.Kind == testkit.WireFrameKind {
					golden.frames = append(golden.frames, goldenFrame{name, w})
				}
			}
		}
	}
	frames := golden.frames
	golden.Unlock()
	if len(frames) < 5000 {
		t.Fatalf("%d golden frames, at least 5000 expected", len(frames))
	}
	for _, w := range frames {
		f(w.file, w.WireFrame)
	}
}

// meaning is what Apache's decoder says about a frame, and what ours says.
type meaning struct {
	Code, Opaque, Flag, Version int32
	Language, Remark            string
	Ext                         map[string]string
	BodyLen                     int
	BodySHA                     string
}

func meaningOf(c *Command) meaning {
	m := meaning{
		Code: c.Code, Opaque: c.Opaque, Flag: c.Flag, Version: c.Version,
		Language: c.Language.String(), Remark: c.Remark, Ext: map[string]string{}, BodyLen: len(c.Body),
	}
	for _, f := range c.Fields {
		m.Ext[string(f.Key)] = string(f.Value)
	}
	if len(c.Body) > 0 {
		sum := sha256.Sum256(c.Body)
		m.BodySHA = hex.EncodeToString(sum[:])
	}
	return m
}

func goldenMeaning(w testkit.WireFrame) meaning {
	m := meaning{
		Code: w.Code, Opaque: w.Opaque, Flag: w.Flag, Version: w.Version,
		Language: w.Language, Ext: map[string]string{}, BodyLen: w.BodyLen, BodySHA: w.BodySHA256,
	}
	if w.Remark != nil {
		m.Remark = *w.Remark
	}
	for k, v := range w.ExtFields {
		m.Ext[k] = v
	}
	if w.BodyLen == 0 {
		m.BodySHA = ""
	}
	return m
}

func TestGoldenFramesDecodeAsApacheDoes(t *testing.T) {
	var c Command
	eachGoldenFrame(t, func(name string, w testkit.WireFrame) {
		n, ok, err := FrameLen(w.Raw)
		if err != nil || !ok || n != len(w.Raw) {
			t.Fatalf("%s seq %d: FrameLen = %d, %v, %v", name, w.Seq, n, ok, err)
		}
		if err := c.Decode(w.Raw); err != nil {
			t.Fatalf("%s seq %d: %v", name, w.Seq, err)
		}
		if c.Serialize.String() != w.Serialize {
			t.Errorf("%s seq %d: serialize %s, want %s", name, w.Seq, c.Serialize, w.Serialize)
		}
		if diff := cmp.Diff(goldenMeaning(w), meaningOf(&c)); diff != "" {
			t.Errorf("%s seq %d (-Apache +ours):\n%s", name, w.Seq, diff)
		}
	})
}

func TestGoldenFramesKeepTheirMeaningInBothHeaders(t *testing.T) {
	var c, back Command
	exact := 0
	eachGoldenFrame(t, func(name string, w testkit.WireFrame) {
		if err := c.Decode(w.Raw); err != nil {
			t.Fatalf("%s seq %d: %v", name, w.Seq, err)
		}
		for _, s := range []Serialize{SerializeJSON, SerializeROCKETMQ} {
			frame, err := c.AppendFrame(nil, s)
			if s == SerializeROCKETMQ && c.Code > 32767 {
				if err == nil {
					t.Errorf("%s seq %d: code %d written in 16 bits", name, w.Seq, c.Code)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s seq %d %s: %v", name, w.Seq, s, err)
			}
			if err := back.Decode(frame); err != nil {
				t.Fatalf("%s seq %d %s: %v", name, w.Seq, s, err)
			}
			want, got := goldenMeaning(w), meaningOf(&back)
			dropEmpty(want.Ext)
			dropEmpty(got.Ext)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s seq %d %s (-Apache +ours):\n%s", name, w.Seq, s, diff)
			}
			if s == c.Serialize && bytes.Equal(frame, w.Raw) {
				exact++
			}
		}
	})
	// Fields keep their order, so what Java wrote comes back to the byte.
	if exact < 5000 {
		t.Errorf("%d frames came back to the byte, at least 5000 expected", exact)
	}
	t.Logf("%d frames came back to the byte", exact)
}

// dropEmpty removes empty values: the binary header cannot tell them from
// null.
func dropEmpty(m map[string]string) {
	for k, v := range m {
		if v == "" {
			delete(m, k)
		}
	}
}

func TestGoldenHeadersDecodeIntoTheirStructs(t *testing.T) {
	var c Command
	seen := map[reflect.Type]int{}
	eachGoldenFrame(t, func(name string, w testkit.WireFrame) {
		if err := c.Decode(w.Raw); err != nil {
			t.Fatalf("%s seq %d: %v", name, w.Seq, err)
		}
		code := c.Code
		if c.IsResponse() {
			if w.RequestCode == nil || c.Code != RespSuccess {
				return
			}
			code = *w.RequestCode
		}
		def, ok := Lookup(code)
		if !ok {
			if code != 3442 { // POP_MESSAGE cut to 16 bits by Apache
				t.Errorf("%s seq %d: code %d is not in the table", name, w.Seq, code)
			}
			return
		}
		typ := def.Request
		if c.IsResponse() {
			typ = def.Response
		}
		if typ == nil || len(c.Fields) == 0 {
			return
		}
		h := reflect.New(typ).Interface()
		if err := DecodeHeader(c.Fields, h); err != nil {
			t.Errorf("%s seq %d %s: %v", name, w.Seq, def.Name, err)
			return
		}
		seen[typ]++
		checkHotDecoders(t, c.Fields, code, h)
		checkHeaderComesBack(t, name, w.Seq, &c, code, h)
	})
	for _, typ := range []reflect.Type{reflect.TypeFor[SendMessageHeader](), reflect.TypeFor[PullMessageHeader](), reflect.TypeFor[RegisterBrokerHeader]()} {
		if seen[typ] < 20 {
			t.Errorf("%d golden headers of %s", seen[typ], typ)
		}
	}
	t.Logf("%d header types", len(seen))
}

// checkHotDecoders compares the decoders without reflection.
func checkHotDecoders(t *testing.T, f Fields, code int32, h any) {
	t.Helper()
	switch h := h.(type) {
	case *SendMessageHeader:
		var v SendMessageView
		if err := v.Decode(f, ShortSendNames(code)); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(*h, headerOfSend(&v)); diff != "" {
			t.Errorf("SendMessageView (-reflection +hot):\n%s", diff)
		}
	case *PullMessageHeader:
		var v PullMessageView
		if err := v.Decode(f); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(*h, headerOfPull(&v)); diff != "" {
			t.Errorf("PullMessageView (-reflection +hot):\n%s", diff)
		}
	}
}

func headerOfSend(v *SendMessageView) SendMessageHeader {
	return SendMessageHeader{
		ProducerGroup: string(v.ProducerGroup), Topic: string(v.Topic), DefaultTopic: string(v.DefaultTopic),
		DefaultTopicQueueNums: v.DefaultTopicQueueNums, QueueID: v.QueueID, SysFlag: v.SysFlag,
		BornTimestamp: v.BornTimestamp, Flag: v.Flag, Properties: string(v.Properties),
		ReconsumeTimes: v.ReconsumeTimes, UnitMode: v.UnitMode, Batch: v.Batch, MaxReconsumeTimes: v.MaxReconsumeTimes,
		TopicHeader: TopicHeader{
			Lo:        v.Lo,
			RPCHeader: RPCHeader{NS: string(v.NS), NSD: v.NSD, BName: string(v.BName), Oneway: v.Oneway},
		},
	}
}

func headerOfPull(v *PullMessageView) PullMessageHeader {
	return PullMessageHeader{
		ConsumerGroup: string(v.ConsumerGroup), Topic: string(v.Topic), LiteTopic: string(v.LiteTopic),
		QueueID: v.QueueID, QueueOffset: v.QueueOffset, MaxMsgNums: v.MaxMsgNums, SysFlag: v.SysFlag,
		CommitOffset: v.CommitOffset, SuspendTimeoutMillis: v.SuspendTimeoutMillis, Subscription: string(v.Subscription),
		SubVersion: v.SubVersion, ExpressionType: string(v.ExpressionType), MaxMsgBytes: v.MaxMsgBytes,
		RequestSource: v.RequestSource, ProxyFrowardClientID: string(v.ProxyFrowardClientID),
		TopicHeader: TopicHeader{
			Lo:        v.Lo,
			RPCHeader: RPCHeader{NS: string(v.NS), NSD: v.NSD, BName: string(v.BName), Oneway: v.Oneway},
		},
	}
}

// notInStructs are fields that the header structs leave to the handlers.
var notInStructs = map[string]bool{
	"ReqT": true, "AccessKey": true, "Signature": true, "_UNIQUE_KEY_QUERY": true, "MSG_REGION": true, "TRACE_ON": true,
}

// checkHeaderComesBack writes the struct again: every field that Apache sent
// must be there with its value, and what is new must be a default.
func checkHeaderComesBack(t *testing.T, name string, seq int, c *Command, code int32, h any) {
	t.Helper()
	var f Fields
	if s, ok := h.(*SendMessageHeader); ok {
		EncodeSend(&f, s, ShortSendNames(code))
	} else {
		EncodeHeader(&f, h)
	}
	for _, fd := range c.Fields {
		if len(fd.Value) == 0 || notInStructs[string(fd.Key)] {
			continue
		}
		if got, ok := f.Get(string(fd.Key)); !ok || !bytes.Equal(got, fd.Value) {
			t.Errorf("%s seq %d %T: field %s = %q, want %q", name, seq, h, fd.Key, got, fd.Value)
		}
	}
	for _, fd := range f {
		if _, ok := c.Fields.Get(string(fd.Key)); ok {
			continue
		}
		if v := string(fd.Value); v != "0" && v != "false" && v != "" {
			t.Errorf("%s seq %d %T: field %s=%s is new", name, seq, h, fd.Key, v)
		}
	}
}

// withoutStruct are JSON bodies that have no struct here.
var withoutStruct = map[int32]bool{ReqCheckRocksDBCQWriteProgress: true, ReqGetColdDataFlowCtrInfo: true, ReqGetTimerMetrics: true}

func TestGoldenBodiesKeepTheirMeaning(t *testing.T) {
	var c Command
	seen := map[reflect.Type]int{}
	versions := map[string]int32{} // of requesters
	eachGoldenFrame(t, func(name string, w testkit.WireFrame) {
		if err := c.Decode(w.Raw); err != nil {
			t.Fatalf("%s seq %d: %v", name, w.Seq, err)
		}
		call := fmt.Sprint(name, w.Conn, c.Opaque)
		if !c.IsResponse() {
			versions[call] = c.Version
		}
		if len(c.Body) == 0 || c.Body[0] != '{' && c.Body[0] != '[' {
			return
		}
		code := c.Code
		if c.IsResponse() {
			if w.RequestCode == nil {
				return
			}
			code = *w.RequestCode
		}
		if withoutStruct[code] {
			return
		}
		def, _ := Lookup(code)
		typ := def.RequestBody
		if c.IsResponse() {
			typ = def.ResponseBody
		}
		if typ == nil {
			t.Errorf("%s seq %d: JSON body of code %d has no struct: %.200s", name, w.Seq, code, c.Body)
			return
		}
		checkBody(t, name, w, &c, typ, versions[call])
		seen[typ]++
	})
	t.Logf("%d body types", len(seen))
}

// checkBody reads a body into its struct and writes it back: the same tree,
// and the same text once the maps of the original are sorted as ours are.
func checkBody(t *testing.T, name string, w testkit.WireFrame, c *Command, typ reflect.Type, requester int32) {
	t.Helper()
	v := reflect.New(typ).Interface()
	if err := fastjson.Unmarshal(c.Body, v); err != nil {
		t.Errorf("%s seq %d %s: %v", name, w.Seq, typ, err)
		return
	}
	out, err := fastjson.Marshal(v)
	if route, ok := v.(*TopicRouteData); ok {
		out, err = route.Marshal(requester, false)
	}
	if err != nil {
		t.Errorf("%s seq %d %s: %v", name, w.Seq, typ, err)
		return
	}
	want, got := parseOrdered(t, c.Body), parseOrdered(t, out)
	if w.Language == "GO" { // other members, other order
		got = keepOnly(got, want)
	}
	if diff := cmp.Diff(sortObjects(want), sortObjects(got)); diff != "" {
		t.Errorf("%s seq %d %s (-Apache +ours):\n%s", name, w.Seq, typ, diff)
	}
	// Members that Java wrote stand in the order of ours: where no map was
	// sorted otherwise the text is the same.
	if w.Language == "JAVA" && (typ == reflect.TypeFor[TopicRouteData]() || !hasMap(typ)) && !bytes.Equal(out, c.Body) {
		t.Errorf("%s seq %d %s: wrote\n%s\nwant\n%s", name, w.Seq, typ, out, c.Body)
	}
}

func parseOrdered(t *testing.T, b []byte) any {
	t.Helper()
	v, err := fastjson.ParseOrdered(b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
