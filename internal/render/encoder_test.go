package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var lineSchema = Schema{
	Kind: "MessageList", Name: "at",
	Fields: []Field{
		{Name: "at", Kind: Int},
		{Name: "size", Kind: Size},
		{Name: "time", Kind: Time},
		{Name: "name"},
		{Name: "keys", Kind: List},
		{Name: "note", Wide: true},
		{Name: "count", Kind: Int, Wide: true},
		{Name: "properties", Kind: Object, Wide: true},
	},
}

type lineRow struct {
	at, size, ms int64
	name, note   string
	unknown      bool
	keys         []string
	properties   map[string]string
}

func (r *lineRow) values() []any {
	when, count := time.Time{}, any(r.size)
	if r.ms > 0 {
		when = time.UnixMilli(r.ms)
	}
	note := any(r.note)
	if r.unknown {
		note, count = nil, nil
	}
	return []any{r.at, r.size, when, r.name, r.keys, note, count, r.properties}
}

func (r *lineRow) encode(e *Encoder, b []byte) []byte {
	e.Begin(b)
	e.Int(r.at)
	e.Int(r.size)
	e.TimeMs(r.ms)
	e.Text([]byte(r.name))
	e.BeginList()
	for _, k := range r.keys {
		e.Item([]byte(k))
	}
	e.EndList()
	if e.Skips(3) {
		return e.End()
	}
	if r.unknown {
		e.Null()
		e.Null()
	} else {
		e.String(r.note)
		e.Int(r.size)
	}
	e.BeginPairs()
	for _, name := range slices.Sorted(maps.Keys(r.properties)) {
		e.Pair([]byte(name), []byte(r.properties[name]))
	}
	e.EndPairs()
	return e.End()
}

// anyText is any bytes: plain, with what is escaped, and no UTF-8.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.StringMatching(`[a-z]{0,20}["\\\t\n\r\x08\x0c\x01\x1f\x7f<&\x{80}\x{9c}\x{a0}\x{2028}\x{2029}\x{fffd}]?[a-z ]{0,20}`),
	)
}

// Lines of an Encoder are those of the Writer, byte for byte.
func TestEncoderIsTheWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *lineRow {
			return &lineRow{
				at: rapid.Int64().Draw(t, "at"), size: rapid.Int64().Draw(t, "size"), ms: rapid.Int64Range(-1, 1<<50).Draw(t, "ms"),
				name: anyText().Draw(t, "name"), note: anyText().Draw(t, "note"), unknown: rapid.Bool().Draw(t, "unknown"),
				keys:       rapid.SliceOfN(anyText(), 0, 3).Draw(t, "keys"),
				properties: rapid.MapOfN(rapid.StringMatching(`[A-Za-z"<\x01é]{0,9}`), anyText(), 0, 4).Draw(t, "properties"),
			}
		}), 0, 4).Draw(t, "rows")
		o := Options{Form: rapid.SampledFrom([]Form{FormTable, FormNDJSON}).Draw(t, "form"), Strings: rapid.Bool().Draw(t, "strings"), Stream: true}
		o.NoHeaders = rapid.Bool().Draw(t, "noHeaders")
		want := writtenLines(t, o, func(w *Writer) error {
			for _, r := range rows {
				if err := w.Row(r.values()...); err != nil {
					return err
				}
			}
			return nil
		})
		for name, add := range map[string]func(*Encoder, []byte, *lineRow) ([]byte, error){
			"values": func(e *Encoder, b []byte, r *lineRow) ([]byte, error) { return r.encode(e, b), nil },
			"Row":    func(e *Encoder, b []byte, r *lineRow) ([]byte, error) { return e.Row(b, r.values()...) },
		} {
			got := writtenLines(t, o, func(w *Writer) error {
				e := w.Encoder()
				var b []byte
				for _, r := range rows {
					var err error
					if b, err = add(e, b, r); err != nil {
						return err
					}
				}
				return w.Lines(b)
			})
			if got != want {
				t.Fatalf("%s:\n%q\nwant\n%q", name, got, want)
			}
		}
	})
}

func writtenLines(t *rapid.T, o Options, f func(*Writer) error) string {
	var b strings.Builder
	w, err := New(&b, lineSchema, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := f(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNoEncoder(t *testing.T) {
	for _, o := range []Options{
		{},
		{Stream: true, Limit: 3},
		{Stream: true, Match: "size>3"},
		{Stream: true, TTY: true},
		{Stream: true, Form: FormCSV},
		{Stream: true, Form: FormWide},
		{Form: FormJSON},
	} {
		w, err := New(io.Discard, lineSchema, o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if w.Encoder() != nil {
			t.Errorf("%+v has an encoder", o)
		}
	}
}

// A mistake in the program does not become a wrong line.
func TestEncoderPanics(t *testing.T) {
	for name, f := range map[string]func(e *Encoder){
		"another kind": func(e *Encoder) { e.Begin(nil); e.Text(nil) },
		"too few":      func(e *Encoder) { e.Begin(nil); e.Int(1); e.End() },
		"too many": func(e *Encoder) {
			(&lineRow{}).encode(e, nil)
			e.Null()
		},
	} {
		w, err := New(io.Discard, lineSchema, Options{Stream: true})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f(w.Encoder())
		}()
	}
}

func lineOf1KiB() *lineRow {
	return &lineRow{
		at: 1 << 40, size: 1070, ms: 1767322245678, name: strings.Repeat(`order "4711" for C:\temp, paid; `, 29),
		note: "text", keys: []string{"order-4711"}, properties: map[string]string{"KEYS": "order-4711", "TAGS": "paid", "UNIQ_KEY": "C000020272F74E0E2F2A9518AA780000"},
	}
}

// The lines of a million messages must not leave garbage.
func TestEncoderDoesNotAllocate(t *testing.T) {
	for _, form := range []Form{FormTable, FormNDJSON} {
		w, err := New(io.Discard, lineSchema, Options{Stream: true, Form: form})
		if err != nil {
			t.Fatal(err)
		}
		e, b, name, key := w.Encoder(), make([]byte, 0, 4096), []byte(lineOf1KiB().name), []byte("order-4711")
		n := testing.AllocsPerRun(100, func() { b = encodeAll(e, b[:0], name, key) })
		if n > 0 {
			t.Errorf("%s: %v allocations a line", form, n)
		}
	}
}

func encodeAll(e *Encoder, b, name, key []byte) []byte {
	e.Begin(b)
	e.Int(1 << 40)
	e.Int(1070)
	e.TimeMs(1767322245678)
	e.Text(name)
	e.BeginList()
	e.Item(key)
	e.EndList()
	e.String("text")
	e.Int(int64(len(name)))
	e.BeginPairs()
	e.Pair(key, key)
	e.EndPairs()
	return e.End()
}

func BenchmarkLine(b *testing.B) {
	row := lineOf1KiB()
	name, key := []byte(row.name), []byte("order-4711")
	for _, form := range []Form{FormTable, FormNDJSON} {
		w, err := New(io.Discard, lineSchema, Options{Stream: true, Form: form})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%s/encoder", form), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(name)))
			e, buf := w.Encoder(), []byte(nil)
			for b.Loop() {
				buf = encodeAll(e, buf[:0], name, key)
			}
		})
		b.Run(fmt.Sprintf("%s/row", form), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(name)))
			for b.Loop() {
				if err := w.Row(row.values()...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
