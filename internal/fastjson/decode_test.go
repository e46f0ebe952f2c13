package fastjson

import (
	"errors"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type queue struct {
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}

type base struct {
	Name  string `json:"name"`
	Order bool   `json:"order"`
}

type everything struct {
	base
	I      int32             `json:"i"`
	L      int64             `json:"l"`
	U      uint8             `json:"u"`
	F      float64           `json:"f"`
	B      bool              `json:"b"`
	S      string            `json:"s,alt=longName"`
	P      *queue            `json:"p"`
	List   []string          `json:"list"`
	Ints   []int32           `json:"ints,omitempty"`
	ByID   map[int64]string  `json:"byId,omitempty"`
	ByMQ   map[queue]int64   `json:"byMq,omitempty"`
	ByName map[string]queue  `json:"byName,omitempty"`
	Any    any               `json:"any"`
	Hidden string            `json:"-"`
	Deep   [][]int           `json:"deep,omitempty"`
	Nested map[int32][]queue `json:"nested,omitempty"`
}

func TestUnmarshalIsLenient(t *testing.T) {
	mq := queue{"b", 1, "T"}
	for _, tc := range []struct {
		name, in string
		want     everything
	}{
		{"nothing", `{}`, everything{}},
		{"unquoted keys and single quotes", `{i:1,'s':'it\'s'}`, everything{I: 1, S: "it's"}},
		{"surplus commas", `{,"i":1,,"list":["a",],}`, everything{I: 1, List: []string{"a"}}},
		{
			"numbers as strings", `{"i":"-5","l":"9223372036854775807","f":"1.5","u":"255","b":"true","ints":["1","2"]}`,
			everything{I: -5, L: 9223372036854775807, F: 1.5, U: 255, B: true, Ints: []int32{1, 2}},
		},
		{"strings as numbers", `{"s":12.50,"list":[1,true,null,{"a": 1}]}`, everything{S: "12.50", List: []string{"1", "true", "", `{"a": 1}`}}},
		{"empty strings as numbers", `{"i":"","f":"","b":""}`, everything{}},
		{"whole floats", `{"i":3.0,"l":1e3}`, everything{I: 3, L: 1000}},
		{"null", `{"i":null,"s":null,"p":null,"list":null,"byId":null,"any":null}`, everything{}},
		{"unknown members", `{"x":[1,{"y":[{}]}],"i":1,"z":{{"a":1}:2,3:4}}`, everything{I: 1}},
		{"number keys", `{"byId":{0:"a","1":"b",-2:"c"}}`, everything{ByID: map[int64]string{0: "a", 1: "b", -2: "c"}}},
		{"object keys", `{"byMq":{{"brokerName":"b","queueId":1,"topic":"T"}:7}}`, everything{ByMQ: map[queue]int64{mq: 7}}},
		{"object keys as strings", `{"byMq":{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}":7}}`, everything{ByMQ: map[queue]int64{mq: 7}}},
		{"embedded structs", `{"name":"n","order":true}`, everything{base: base{"n", true}}},
		{"second name", `{"longName":"x"}`, everything{S: "x"}},
		{"pointer", `{"p":{"topic":"T","brokerName":"b","queueId":1}}`, everything{P: &mq}},
		{
			"nested", `{"deep":[[1],[],[2,3]],"nested":{0:[{"topic":"T","brokerName":"b","queueId":1}]}}`,
			everything{Deep: [][]int{{1}, {}, {2, 3}}, Nested: map[int32][]queue{0: {mq}}},
		},
		{"any", `{"any":{"a":[1,2.5,"x",true,null]}}`, everything{Any: map[string]any{"a": []any{int64(1), 2.5, "x", true, nil}}}},
		{"escapes", `{"s":"\u00fc\uD83D\uDE00\x41\/\v\0"}`, everything{S: "ü😀A/\v0"}},
		{"byte order mark", "\xef\xbb\xbf{\"i\":1}", everything{I: 1}},
		{"last of a name counts", `{"i":1,"i":2}`, everything{I: 2}},
	} {
		var got everything
		if err := Unmarshal([]byte(tc.in), &got); err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(everything{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestUnmarshalSaysWhereItFails(t *testing.T) {
	for _, tc := range []struct {
		in, what string
		at       int
	}{
		{``, "unexpected end", 0},
		{`{`, "unexpected end", 1},
		{`{"i"`, "colon expected", 4},
		{`{"i":`, "unexpected end", 5},
		{`{"i":1`, "unexpected end", 6},
		{`{"i":1 "l":2}`, "comma expected", 7},
		{`{"i":x}`, "whole number expected", 5},
		{`{"i":1.5}`, "whole number expected", 5},
		{`{"i":3000000000}`, "number out of range", 5},
		{`{"u":256}`, "number out of range", 5},
		{`{"u":-1}`, "whole number expected", 5},
		{`{"l":1e300}`, "whole number expected", 5},
		{`{"f":abc}`, "number expected", 5},
		{`{"b":maybe}`, "true or false expected", 5},
		{`{"i":[]}`, "number expected", 5},
		{`{"p":[]}`, "object expected", 5},
		{`{"list":{}}`, "array expected", 8},
		{`{"byId":[]}`, "object expected", 8},
		{`{"byId":{a:""}}`, "whole number expected", 9},
		{`{"byId":{{}:""}}`, "number expected as key", 9},
		{`{"byMq":{a:1}}`, "object expected as key", 9},
		{`{"s":"abc}`, "string without an end", 5},
		{`{"s":"ab\"}`, "string without an end", 5},
		{`{"s":"\u12"}`, "unknown escape", 6},
		{`{"s":"\xZZ"}`, "unknown escape", 6},
		{`{"any":what}`, "value expected", 7},
		{`{:1}`, "key expected", 1},
		{`{"i":}`, "value expected", 5},
		{`{} {}`, "unexpected text after the value", 3},
		{`[1]`, "object expected", 0},
	} {
		var got everything
		err := Unmarshal([]byte(tc.in), &got)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.What != tc.what || syntax.Offset != tc.at {
			t.Errorf("%s: %v, want %q at %d", tc.in, err, tc.what, tc.at)
		}
	}
	if err := Unmarshal([]byte(`{}`), everything{}); err == nil {
		t.Error("read into a value that is no pointer")
	}
	var c chan int
	if err := Unmarshal([]byte(`1`), &c); err == nil {
		t.Error("read into a channel")
	}
}

func TestDeepTextIsRefusedWithoutStackGrowth(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	for _, open := range []string{`[`, `{"x":`, `{"any":`, `{{`, `{"any":[{"a":`} {
		text := []byte(strings.Repeat(open, 1_000_000))
		var v everything
		if err := Unmarshal(text, &v); err == nil {
			t.Errorf("%s: Unmarshal read it", open)
		}
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "deep") {
			t.Errorf("%s: Parse: %v", open, err)
		}
		if _, err := ParseOrdered(text); err == nil || !strings.Contains(err.Error(), "deep") {
			t.Errorf("%s: ParseOrdered: %v", open, err)
		}
	}
	ok := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	if _, err := Parse([]byte(ok)); err != nil {
		t.Errorf("depth of exactly MaxDepth: %v", err)
	}
}

func TestParse(t *testing.T) {
	got, err := Parse([]byte(` {a:1, "b":[-2.5,1e2,"x",true,false,null,99999999999999999999], {"k":1}:{}, 7:"n"} `))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": int64(1), "b": []any{-2.5, 100.0, "x", true, false, nil, "99999999999999999999"},
		`{"k":1}`: map[string]any{}, "7": "n",
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, bad := range []string{`nope`, `1-2`, `-`, `1.2.3`, `+`, `{"a":01x}`} {
		if v, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s was read as %v", bad, v)
		}
	}
}

func TestParseOrderedKeepsOrderAndKeys(t *testing.T) {
	const text = `{"b":1,"a":{2:"x","3":"y"},{"q":[1],"p":null}:{},"b":2}`
	v, err := ParseOrdered([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != text {
		t.Errorf("wrote %s\nwant  %s", out, text)
	}
	if b, ok := v.(Object).Get("b"); !ok || b != int64(2) {
		t.Errorf("Get of a repeated key: %v", b)
	}
	if _, ok := v.(Object).Get("c"); ok {
		t.Error("Get of a missing key")
	}
}

func TestUnmarshalReplacesWhatWasThere(t *testing.T) {
	v := everything{List: []string{"old", "old"}, ByID: map[int64]string{9: "old"}, Ints: []int32{1, 2, 3}}
	if err := Unmarshal([]byte(`{"list":["new"],"byId":{1:"new"},"ints":[]}`), &v); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(v.List, []string{"new"}) || !reflect.DeepEqual(v.ByID, map[int64]string{1: "new"}) || len(v.Ints) != 0 || v.Ints == nil {
		t.Errorf("read %+v", v)
	}
}

type withDefaults struct {
	A int  `json:"a"`
	B bool `json:"b"`
}

func (w *withDefaults) JSONDefaults() { *w = withDefaults{A: 7, B: true} }

// A Defaulter has its defaults wherever it stands, and every time it is read.
func TestUnmarshalDefaults(t *testing.T) {
	type outer struct {
		withDefaults
		C int `json:"c"`
	}
	type all struct {
		One  withDefaults            `json:"one"`
		Ptr  *withDefaults           `json:"ptr"`
		List []withDefaults          `json:"list"`
		Map  map[string]withDefaults `json:"map"`
		Out  outer                   `json:"out"`
	}
	var got all
	if err := Unmarshal([]byte(`{"one":{"a":1},"ptr":{},"list":[{"b":false},{}],"map":{"x":{"a":2,"b":false},"y":{}},"out":{"c":3}}`), &got); err != nil {
		t.Fatal(err)
	}
	d := withDefaults{7, true}
	want := all{
		One: withDefaults{1, true}, Ptr: &d, List: []withDefaults{{7, false}, d},
		Map: map[string]withDefaults{"x": {2, false}, "y": d}, Out: outer{d, 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
