package props

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type mode string

func (m *mode) UnmarshalText(b []byte) error {
	switch s := string(b); s {
	case "ASYNC", "SYNC":
		*m = mode(s)
		return nil
	default:
		return fmt.Errorf("%q is neither ASYNC nor SYNC", s)
	}
}
func (m mode) MarshalText() ([]byte, error) { return []byte(m), nil }

type inner struct {
	Port int `conf:"listenPort"`
}

type target struct {
	Name    string        `conf:"brokerName"`
	Port    int           `conf:"listenPort"`
	Big     int64         `conf:"big"`
	On      bool          `conf:"on"`
	Ratio   float64       `conf:"ratio"`
	Mode    mode          `conf:"mode"`
	Timeout time.Duration `conf:"timeout,ms"`
	Keep    time.Duration `conf:"keep,h"`
	Plain   string
	Inner   inner
}

func bind(t *testing.T, text string) (target, []Entry, error) {
	t.Helper()
	f, err := Parse("broker.conf", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got target
	unknown, err := Bind(f, &got)
	return got, unknown, err
}

func TestBind(t *testing.T) {
	got, unknown, err := bind(t, strings.Join([]string{
		"brokerName=broker-a", "listenPort=10911", "big=9223372036854775807", "on=TRUE", "ratio=0.75", "mode=SYNC",
		"timeout=5000", "keep=72", "nobody=knows",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := target{
		Name: "broker-a", Port: 10911, Big: 1<<63 - 1, On: true, Ratio: 0.75, Mode: "SYNC",
		Timeout: 5 * time.Second, Keep: 72 * time.Hour, Inner: inner{Port: 10911},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(target{})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Entry{{"nobody", "knows", 9}}, unknown); d != "" {
		t.Error(d)
	}
}

func TestBindMalformed(t *testing.T) {
	tests := []struct{ line, want string }{
		{"listenPort=1x", `"1x" is no whole number`},
		{"listenPort=", `"" is no whole number`},
		{"listenPort=2147483648", "out of range (32 bit)"},
		{"big=9223372036854775808", "out of range (64 bit)"},
		{"on=yes", `"yes" is neither true nor false`},
		{"ratio=half", `"half" is no number`},
		{"ratio=NaN", `"NaN" is no number`},
		{"mode=MAYBE", `"MAYBE" is neither ASYNC nor SYNC`},
		{"timeout=5s", `"5s" is no whole number`},
		{"listenPort=10911 # main port", "a comment cannot follow a value"},
	}
	for _, tt := range tests {
		_, _, err := bind(t, "# head\n"+tt.line+"\n")
		var se *SyntaxError
		if !errors.As(err, &se) || se.Line != 2 || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "broker.conf:2: ") {
			t.Errorf("%s: %v, want %q in line 2", tt.line, err, tt.want)
		}
	}
}

func TestBindGoesOnAfterAnError(t *testing.T) {
	got, _, err := bind(t, "listenPort=x\nbrokerName=b\n")
	if err == nil || got.Name != "b" || got.Port != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFieldsGiveBackWhatWasSet(t *testing.T) {
	v := target{Name: "n", Port: 1, Big: 2, On: true, Ratio: 3, Mode: "SYNC", Timeout: 4 * time.Millisecond, Keep: time.Hour}
	got := map[string]string{}
	for _, f := range Fields(&v) {
		got[f.Key] = f.String()
		if f.Key == "listenPort" {
			continue
		}
		if err := f.Set(f.String()); err != nil {
			t.Errorf("%s does not take its own value: %v", f.Key, err)
		}
	}
	want := map[string]string{
		"brokerName": "n", "listenPort": "0", "big": "2", "on": "true", "ratio": "3.0", "mode": "SYNC", "timeout": "4", "keep": "1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestUnknownText(t *testing.T) {
	f := &File{Name: "broker.conf"}
	if got := UnknownText(f, Entry{Key: "k", Line: 7}); got != `broker.conf:7: unknown key "k" is ignored` {
		t.Error(got)
	}
}
