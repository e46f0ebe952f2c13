package remoting

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryHeaderStructComesBack(t *testing.T) {
	codes, names := map[int32]bool{}, map[string]bool{}
	for _, d := range Defs() {
		if codes[d.Code] || names[d.Name] {
			t.Errorf("%d %s occurs twice", d.Code, d.Name)
		}
		codes[d.Code], names[d.Name] = true, true
		if RequestName(d.Code) != d.Name {
			t.Errorf("RequestName(%d) = %s", d.Code, RequestName(d.Code))
		}
		for _, typ := range []reflect.Type{d.Request, d.Response} {
			if typ == nil {
				continue
			}
			h := reflect.New(typ)
			fill(h.Elem())
			var f Fields
			EncodeHeader(&f, h.Interface())
			back := reflect.New(typ)
			if err := DecodeHeader(f, back.Interface()); err != nil {
				t.Errorf("%s: %v", typ, err)
			}
			if diff := cmp.Diff(h.Interface(), back.Interface()); diff != "" {
				t.Errorf("%s (-written +read):\n%s", typ, diff)
			}
		}
	}
	if len(codes) < 165 {
		t.Errorf("%d codes", len(codes))
	}
	if RequestName(4242) != "4242" || ResponseName(4242) != "4242" || ResponseName(17) != "TOPIC_NOT_EXIST" {
		t.Error("names of codes")
	}
	for code, name := range map[int32]string{ReqMqxHA: "MQX_HA", ReqReplicaHello: "MQX_REPLICA_HELLO", ReqTablesChanged: "MQX_TABLES_CHANGED", ReqProbeBroker: "MQX_PROBE_BROKER"} {
		if got := RequestName(code); got != name {
			t.Errorf("RequestName(%d) = %s, want %s", code, got, name)
		}
	}
	if d, ok := Lookup(ReqSendMessageV2); !ok || d.Request != reflect.TypeFor[SendMessageHeader]() {
		t.Errorf("Lookup: %v, %v", d, ok)
	}
}

// fill sets every field to something that is not its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(-12345)
	}
}

func TestDecodeHeaderNamesWhatIsWrong(t *testing.T) {
	var f Fields
	f.Set("consumerGroup", "g")
	f.Set("topic", "t")
	var h QueryConsumerOffsetHeader
	var missing *MissingFieldError
	if err := DecodeHeader(f, &h); !errors.As(err, &missing) || err.Error() != "the custom field <queueId> is null" {
		t.Errorf("missing: %v", err)
	}
	f.Set("queueId", "")
	if err := DecodeHeader(f, &h); !errors.As(err, &missing) || missing.Field != "queueId" {
		t.Errorf("empty number: %v", err)
	}
	f.Set("queueId", "3x")
	var bad *FieldError
	if err := DecodeHeader(f, &h); !errors.As(err, &bad) || bad.Field != "queueId" || bad.Value != "3x" {
		t.Errorf("no number: %v", err)
	}
	f.Set("queueId", "3")
	f.Set("setZeroIfNotFound", "FALSE")
	f.Set("bname", "b")
	if err := DecodeHeader(f, &h); err != nil {
		t.Fatal(err)
	}
	want := QueryConsumerOffsetHeader{ConsumerGroup: "g", Topic: "t", QueueID: 3, SetZeroIfNotFound: Some(false)}
	want.BName = "b"
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if h.Lo.OK || h.Lo.Or(true) != true || h.SetZeroIfNotFound.Or(true) {
		t.Error("an absent field must not look like false")
	}
}

func TestAbsentFieldMayBeTrue(t *testing.T) {
	var f Fields
	f.Set("topic", "t")
	f.Set("queueId", "0")
	for text, want := range map[string]bool{"": true, "true": true, "false": false} {
		f.Del("committed")
		if text != "" {
			f.Set("committed", text)
		}
		var h GetMaxOffsetHeader
		if err := DecodeHeader(f, &h); err != nil || h.Committed != want {
			t.Errorf("committed=%q: %v, %v", text, h.Committed, err)
		}
	}
}

func TestSendHeaderHasTwoSetsOfNames(t *testing.T) {
	h := SendMessageHeader{
		ProducerGroup: "g", Topic: "t", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: -1, SysFlag: 1, BornTimestamp: 1795993445669,
		Flag: 7, Properties: "KEYS\x01k\x02", ReconsumeTimes: 2, UnitMode: true, Batch: true, MaxReconsumeTimes: Some(int32(0)),
	}
	h.BName, h.Lo, h.NS = "broker", Some(false), "ns"
	for _, code := range []int32{ReqSendMessage, ReqSendMessageV2, ReqSendBatchMessage, ReqSendReplyMessage, ReqSendReplyMessageV2} {
		c := NewRequest(code, &h)
		if _, short := c.Fields.Get("a"); short != ShortSendNames(code) {
			t.Errorf("code %d: short names %v", code, short)
		}
		var slow SendMessageHeader
		var hot SendMessageView
		if err := DecodeHeader(c.Fields, &slow); err != nil {
			t.Fatal(err)
		}
		if err := hot.Decode(c.Fields, ShortSendNames(code)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, slow); diff != "" {
			t.Errorf("code %d, DecodeHeader (-want +got):\n%s", code, diff)
		}
		if diff := cmp.Diff(h, headerOfSend(&hot)); diff != "" {
			t.Errorf("code %d, SendMessageView (-want +got):\n%s", code, diff)
		}
	}
}

func TestHotDecodersNameWhatIsMissing(t *testing.T) {
	send := NewRequest(ReqSendMessageV2, &SendMessageHeader{ProducerGroup: "g", Topic: "t", DefaultTopic: "d"}).Fields
	pull := NewRequest(ReqPullMessage, &PullMessageHeader{ConsumerGroup: "g", Topic: "t"}).Fields
	var s SendMessageView
	var p PullMessageView
	var missing *MissingFieldError
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		f := append(Fields(nil), send...)
		f.Del(name)
		if err := s.Decode(f, true); !errors.As(err, &missing) || missing.Field != name {
			t.Errorf("send without %s: %v", name, err)
		}
	}
	for _, name := range []string{"consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset", "suspendTimeoutMillis", "subVersion"} {
		f := append(Fields(nil), pull...)
		f.Del(name)
		if err := p.Decode(f); !errors.As(err, &missing) || missing.Field != name {
			t.Errorf("pull without %s: %v", name, err)
		}
	}
	send.Set("g", "now")
	var bad *FieldError
	if err := s.Decode(send, true); !errors.As(err, &bad) || bad.Field != "g" {
		t.Errorf("send with a bad time: %v", err)
	}
	pull.Set("queueOffset", "9223372036854775808")
	if err := p.Decode(pull); !errors.As(err, &bad) || bad.Field != "queueOffset" {
		t.Errorf("pull with a bad offset: %v", err)
	}
	if err := s.Decode(nil, false); !errors.As(err, &missing) || missing.Field != "producerGroup" {
		t.Errorf("send without anything: %v", err)
	}
}

func TestVersionNames(t *testing.T) {
	for v, want := range map[int32]string{
		0: "V3_0_0_SNAPSHOT", 15: "V3_0_0_FINAL", V3_0_7_SNAPSHOT: "V3_0_7_SNAPSHOT", V3_0_11: "V3_0_11", V3_1_8_SNAPSHOT: "V3_1_8_SNAPSHOT",
		V3_4_9: "V3_4_9", V3_5_8: "V3_5_8", V4_0_0: "V4_0_0", 233: "V4_1_0", 273: "V4_3_0", 313: "V4_5_0", 317: "V4_5_2", 393: "V4_9_0", V4_9_3: "V4_9_3",
		V4_9_4: "V4_9_4", 409: "V4_9_8", V5_0_0: "V5_0_0", 433: "V5_1_0", 453: "V5_2_0", 473: "V5_3_0", V5_3_1: "V5_3_1", 479: "V5_3_3", 493: "V5_4_0",
		Version: "V5_5_0", 611: "V5_9_9", HigherVersion: "HIGHER_VERSION", 9999: "HIGHER_VERSION", -1: "-1",
	} {
		if got := VersionName(v); got != want {
			t.Errorf("VersionName(%d) = %s, want %s", v, got, want)
		}
	}
}

func TestLanguageNames(t *testing.T) {
	for l := LanguageJava; l <= LanguageNodeJS; l++ {
		if ParseLanguage(l.String()) != l {
			t.Errorf("%d %s comes back as %d", l, l, ParseLanguage(l.String()))
		}
	}
	if ParseLanguage("COBOL") != LanguageOther || Language(77).String() != "LanguageCode(77)" {
		t.Error("unknown languages")
	}
}
