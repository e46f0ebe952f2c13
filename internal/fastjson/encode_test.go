package fastjson

import (
	"math"
	"strings"
	"testing"
)

func TestMarshalForms(t *testing.T) {
	one := "x"
	type ptrs struct {
		Q *queue  `json:"q"`
		S *string `json:"s"`
	}
	for _, tc := range []struct {
		name                    string
		v                       any
		loose, standard, pretty string
	}{
		{
			"members by name, nil slices empty, nil pointers left out",
			everything{S: "s", Hidden: "h"},
			`{"b":false,"f":0.0,"i":0,"l":0,"list":[],"name":"","order":false,"s":"s","u":0}`, "", "",
		},
		{
			"number keys",
			map[int64]string{10: "b", 2: "a", -1: "c"},
			`{-1:"c",2:"a",10:"b"}`, `{"-1":"c","2":"a","10":"b"}`, "{\n\t-1:\"c\",\n\t2:\"a\",\n\t10:\"b\"\n}",
		},
		{
			"object keys",
			map[queue]int64{{"b", 10, "T"}: 1, {"b", 9, "T"}: 2, {"a", 11, "U"}: 3},
			`{{"brokerName":"a","queueId":11,"topic":"U"}:3,{"brokerName":"b","queueId":9,"topic":"T"}:2,{"brokerName":"b","queueId":10,"topic":"T"}:1}`, "", "",
		},
		{
			"object keys in standard JSON",
			map[queue]int64{{"b", 1, "T"}: 1},
			"",
			`{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}":1}`, "",
		},
		{
			"text keys",
			map[string]bool{"b": true, "ä": false, "a": false},
			`{"a":false,"b":true,"ä":false}`, `{"a":false,"b":true,"\u00e4":false}`, "",
		},
		{
			"texts",
			[]string{"a\"\\/\b\f\n\r\t\x01\x1f\x7f", "ü😀", "\xff"},
			`["a\"\\/\b\f\n\r\t\u0001\u001f` + "\x7f" + `","ü😀","` + "\uFFFD" + `"]`,
			`["a\"\\/\b\f\n\r\t\u0001\u001f` + "\x7f" + `","\u00fc\ud83d\ude00","\ufffd"]`, "",
		},
		{"pointers", ptrs{S: &one}, `{"s":"x"}`, "", ""},
		{"pointer to struct", &ptrs{Q: &queue{}}, `{"q":{"brokerName":"","queueId":0,"topic":""}}`, "", ""},
		{"nil values of maps are left out", map[string]any{"a": nil, "b": 1}, `{"b":1}`, "", ""},
		{"nil values of lists stay", []any{nil, int32(1), uint(2)}, `[null,1,2]`, "", ""},
		{"nil", nil, `null`, `null`, `null`},
		{
			"lists",
			map[string]any{"n": []int64{1, 2}, "s": []string{"a", "b"}, "e": []string{}, "o": []queue{{"b", 1, "T"}}, "m": map[string]int{}},
			"", "",
			"{\n\t\"e\":[],\n\t\"m\":{},\n\t\"n\":[1,2],\n\t\"o\":[\n\t\t{\n\t\t\t\"brokerName\":\"b\",\n\t\t\t\"queueId\":1,\n\t\t\t\"topic\":\"T\"\n\t\t}\n\t],\n\t\"s\":[\n\t\t\"a\",\n\t\t\"b\"\n\t]\n}",
		},
	} {
		for form, c := range map[string]struct {
			f    func(any) ([]byte, error)
			want string
		}{"loose": {Marshal, tc.loose}, "standard": {MarshalStandard, tc.standard}, "pretty": {MarshalPretty, tc.pretty}} {
			if c.want == "" {
				continue
			}
			got, err := c.f(tc.v)
			if err != nil {
				t.Errorf("%s, %s: %v", tc.name, form, err)
			} else if string(got) != c.want {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", tc.name, form, got, c.want)
			}
		}
	}
}

func TestMarshalRefuses(t *testing.T) {
	if _, err := Marshal(make(chan int)); err == nil {
		t.Error("a channel was written")
	}
	type ring struct {
		Next *ring `json:"next"`
	}
	r := &ring{}
	r.Next = r
	if _, err := Marshal(r); err == nil || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("a ring: %v", err)
	}
}

func TestFloatsAreWrittenAsJavaDoes(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", -1: "-1.0", 0.2: "0.2", 1.2500625031251562: "1.2500625031251562", 0.06666666666666667: "0.06666666666666667",
		100: "100.0", 9999999: "9999999.0", 1e7: "1.0E7", 12345678.9: "1.23456789E7", 0.001: "0.001", 0.00099: "9.9E-4", 1e-10: "1.0E-10",
		1e300: "1.0E300", math.MaxFloat64: "1.7976931348623157E308", 5e-324: "5.0E-324", -2.5e-5: "-2.5E-5", math.Inf(1): "null",
	} {
		if got := string(appendFloat(nil, f)); got != want {
			t.Errorf("%g: %s, want %s", f, got, want)
		}
	}
	if got := string(appendFloat(nil, math.Copysign(0, -1))); got != "-0.0" {
		t.Errorf("negative zero: %s", got)
	}
	if got := string(appendFloat(nil, math.NaN())); got != "null" {
		t.Errorf("NaN: %s", got)
	}
}
