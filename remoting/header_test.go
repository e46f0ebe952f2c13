package remoting

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
)

func decodeJSONHeader(t *testing.T, header string) (*Command, error) {
	t.Helper()
	c := &Command{}
	return c, c.Decode(frameOf(0, header, ""))
}

func TestJSONHeaderIsReadLeniently(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", `{}`, "0 0 0 0 JAVA [] "},
		{"all members", `{"code":105,"extFields":{"topic":"T"},"flag":1,"language":"GO","opaque":-7,"remark":"r","serializeTypeCurrentRPC":"JSON","version":513}`, "105 1 -7 513 GO [topic=T] r"},
		{"any order and blanks", " {\n\"version\" : 513 , \"code\" :\t10 } ", "10 0 0 513 JAVA [] "},
		{"numbers as strings", `{"code":"10","opaque":"7"}`, "10 0 7 0 JAVA [] "},
		{"whole floats", `{"code":10.0,"opaque":1e3}`, "10 0 1000 0 JAVA [] "},
		{"null members", `{"code":10,"remark":null,"extFields":null,"language":null,"flag":null}`, "10 0 0 0 JAVA [] "},
		{"null field", `{"extFields":{"a":null,"b":""}}`, "0 0 0 0 JAVA [a=<nil> b=] "},
		{"fields that are no strings", `{"extFields":{"a":1,"b":true,"c":{"x":[1,"}"]},"d":-2.5}}`, `0 0 0 0 JAVA [a=1 b=true c={"x":[1,"}"]} d=-2.5] `},
		{"unknown language", `{"language":"KLINGON"}`, "0 0 0 0 OTHER [] "},
		{"language as number", `{"language":9}`, "0 0 0 0 GO [] "},
		{"unknown members", `{"x":[1,{"y":"]"}],"code":3,"z":{"a":{"b":null}}}`, "3 0 0 0 JAVA [] "},
		{"names without quotes", `{code:3,extFields:{0:"a",topic:'T'}}`, "3 0 0 0 JAVA [0=a topic=T] "},
		{"single quotes", `{'code':3,'remark':'it\'s'}`, "3 0 0 0 JAVA [] it's"},
		{"surplus commas", `{,"code":3,,"extFields":{"a":"1",},}`, "3 0 0 0 JAVA [a=1] "},
		{"control characters", `{"extFields":{"i":"KEYS\u0001k1\u0002TAGS\u0001t\u0002"}}`, "0 0 0 0 JAVA [i=KEYS\x01k1\x02TAGS\x01t\x02] "},
		{"escapes", `{"remark":"\"\\\/\b\f\n\r\t\u00fc\uD83D\uDE00\x41"}`, "0 0 0 0 JAVA [] \"\\/\b\f\n\r\tü😀A"},
		{"escaped names", `{"extFields":{"\u0061\n":"v"}}`, "0 0 0 0 JAVA [a\n=v] "},
		{"lone surrogate", `{"remark":"\uD83Dx"}`, "0 0 0 0 JAVA [] \uFFFDx"},
		{"second extFields replaces the first", `{"extFields":{"a":"1"},"extFields":{"b":"2"}}`, "0 0 0 0 JAVA [b=2] "},
		{"text of eight bytes before a quote", `{"remark":"12345678","code":1}`, "1 0 0 0 JAVA [] 12345678"},
	} {
		c, err := decodeJSONHeader(t, tc.in)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		var fields []string
		for _, f := range c.Fields {
			v := string(f.Value)
			if f.Value == nil {
				v = "<nil>"
			}
			fields = append(fields, string(f.Key)+"="+v)
		}
		got := fmt.Sprintf("%d %d %d %d %s %s %s", c.Code, c.Flag, c.Opaque, c.Version, c.Language, fields, c.Remark)
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestJSONHeaderRefusesGarbage(t *testing.T) {
	for _, in := range []string{
		``, ` `, `[]`, `"x"`, `{`, `{"code"`, `{"code":`, `{"code":1`, `{"code":1 "flag":2}`, `{"code":x}`, `{"code":1.5}`,
		`{"code":3000000000}`, `{"code":"9999999999999999999999"}`, `{"remark":"`, `{"remark":"\`, `{"remark":"\u12`, `{"remark":"\u12G4"}`,
		`{"code":1}}`, `{"code":1}x`, `{"extFields":[]}`, `{"extFields":"a"}`, `{"extFields":{"a"}}`, `{"extFields":{"a":}}`, `{:1}`, `{"x":[}`, `{"x":[1`,
	} {
		var headerErr *HeaderError
		if _, err := decodeJSONHeader(t, in); !errors.As(err, &headerErr) {
			t.Errorf("%q: %v, want a HeaderError", in, err)
		}
	}
}

func TestHeadersWithTooManyFieldsAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"extFields":{`)
	var binary []byte
	for i := range 100_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"":""`)
		binary = append(binary, 0, 0, 0, 0, 0, 0)
	}
	b.WriteString(`}}`)
	var c Command
	if err := c.Decode(frameOf(0, b.String(), "")); !errors.Is(err, ErrTooManyFields) {
		t.Errorf("JSON: %v", err)
	}
	n := len(binary)
	header := string(make([]byte, 17)) + string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + string(binary)
	if err := c.Decode(frameOf(1, header, "")); !errors.Is(err, ErrTooManyFields) {
		t.Errorf("ROCKETMQ: %v", err)
	}
	if cap(c.Fields) > 2*MaxHeaderFields {
		t.Errorf("room for %d fields", cap(c.Fields))
	}
}

func TestDeepHeaderIsRefusedWithoutStackGrowth(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	for _, open := range []string{"[", `{"a":`} {
		header := `{"x":` + strings.Repeat(open, MaxHeader/2/len(open))
		if _, err := decodeJSONHeader(t, header); err == nil || !strings.Contains(err.Error(), "deep") {
			t.Errorf("%s: %v", open, err)
		}
	}
}

func TestBinaryHeaderRefusesGarbage(t *testing.T) {
	good := "\x00\x0a" + "\x09" + "\x02\x01" + "\x00\x00\x00\x07" + "\x00\x00\x00\x02" + "\x00\x00\x00\x02hi" +
		"\x00\x00\x00\x0c" + "\x00\x05topic" + "\x00\x00\x00\x01T"
	var c Command
	if err := c.Decode(frameOf(1, good, "")); err != nil {
		t.Fatal(err)
	}
	if c.Code != 10 || c.Language != LanguageGo || c.Version != 513 || c.Opaque != 7 || !c.IsOneway() || c.Remark != "hi" || c.Fields.String("topic") != "T" {
		t.Errorf("decoded %+v", c)
	}
	for n := range len(good) {
		if err := c.Decode(frameOf(1, good[:n], "")); err == nil {
			t.Errorf("header cut to %d bytes was read", n)
		}
	}
	for name, in := range map[string]string{
		"bytes after the fields": good + "x",
		"negative remark":        good[:13] + "\xff\xff\xff\xff" + good[17:],
		"negative field name":    good[:23] + "\xff\xff" + good[25:],
		"negative field value":   strings.Replace(good, "\x00\x00\x00\x01T", "\xff\xff\xff\xffT", 1),
	} {
		var headerErr *HeaderError
		if err := c.Decode(frameOf(1, in, "")); !errors.As(err, &headerErr) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJSONHeaderIsWrittenAsJavaDoes(t *testing.T) {
	c := &Command{Code: 310, Language: LanguageGo, Version: Version, Opaque: -1, Flag: 0, Remark: "a\"b\\\x01\nü\x80"}
	c.Fields.Set("i", "KEYS\x01k\x02")
	c.Fields.SetInt("e", -3)
	c.Fields = append(c.Fields, Field{Key: []byte("gone")})
	want := `{"code":310,"extFields":{"i":"KEYS\u0001k\u0002","e":"-3"},"flag":0,"language":"GO","opaque":-1,` +
		`"remark":"a\"b\\\u0001\nü` + "\uFFFD" + `","serializeTypeCurrentRPC":"JSON","version":513}`
	frame, err := c.AppendFrame(nil, SerializeJSON)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(frame[8:]); got != want {
		t.Errorf("wrote %s\nwant  %s", got, want)
	}
	empty := &Command{EmptyFields: true, Language: 99}
	frame, err = empty.AppendFrame(nil, SerializeJSON)
	if err != nil {
		t.Fatal(err)
	}
	want = `{"code":0,"extFields":{},"flag":0,"language":"OTHER","opaque":0,"serializeTypeCurrentRPC":"JSON","version":0}`
	if got := string(frame[8:]); got != want {
		t.Errorf("wrote %s\nwant  %s", got, want)
	}
}

func TestFieldsOfOneName(t *testing.T) {
	f := Fields{{[]byte("a"), []byte("1")}, {[]byte("a"), []byte("2")}, {[]byte("n"), nil}}
	if v := f.String("a"); v != "2" {
		t.Errorf("Get of a repeated name: %q, the last counts", v)
	}
	if _, ok := f.Get("n"); ok {
		t.Error("a null field counts as present")
	}
	f.Set("a", "3")
	f.Del("n")
	if f.Len() != 2 || f.String("a") != "3" {
		t.Errorf("after Set and Del: %v", f)
	}
	if _, ok, err := f.Int32("a"); !ok || err != nil {
		t.Errorf("Int32: %v, %v", ok, err)
	}
	f.Set("a", "3000000000")
	var fieldErr *FieldError
	if _, _, err := f.Int32("a"); !errors.As(err, &fieldErr) || fieldErr.Field != "a" {
		t.Errorf("Int32 out of range: %v", err)
	}
	if v, _, err := f.Int64("a"); v != 3000000000 || err != nil {
		t.Errorf("Int64: %d, %v", v, err)
	}
	if v, ok := f.Bool("a"); v || !ok {
		t.Errorf("Bool of a number: %v, %v", v, ok)
	}
	f.SetBool("b", true)
	if v, ok := f.Bool("b"); !v || !ok {
		t.Errorf("Bool: %v, %v", v, ok)
	}
}
