package cmd

import (
	"bytes"
	"context"
	"net/netip"
	"strings"
	"testing"

	"mqx/internal/render"
	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store/inspect"
)

// The lines that the workers of a scan make are those that a Writer makes of the rows, byte for byte, for every record
// that Apache wrote: compressed ones, inner batches, half messages, IPv6 and damaged ones among them.
func TestRecordLinesAreRows(t *testing.T) {
	if raced {
		t.Skip("it runs without the race detector: nothing is concurrent here")
	}
	for _, variant := range testkit.GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			d, err := inspect.Open(testkit.GoldenStore(t, variant), inspect.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			for _, show := range []messageFlags{{body: "text"}, {body: "hex"}, {body: "base64"}, {body: "none"}, {body: "text", redact: true}} {
				for _, o := range []render.Options{{Stream: true}, {Stream: true, Form: render.FormNDJSON}, {Stream: true, Form: render.FormNDJSON, Strings: true}} {
					sameLines(t, d, &show, o)
				}
			}
		})
	}
}

func sameLines(t *testing.T, d *inspect.Dir, show *messageFlags, o render.Options) {
	t.Helper()
	ctx, m := context.Background(), inspect.Match{}
	want, w := linesTo(t, o)
	_, err := d.Log().Scan(ctx, inspect.ScanOptions{}, m.Func(), func(_ int64, v message.View) error {
		return show.storeRecordRows(v, m, w.Lean(), func(row []any) error { return w.Row(row...) })
	})
	if err != nil {
		t.Fatal(err)
	}
	got, w := linesTo(t, o)
	if _, err := d.Log().Convert(ctx, inspect.ScanOptions{Workers: 3}, m.Func(), show.format(w, m), w.Lines); err != nil {
		t.Fatal(err)
	}
	if want.String() != got.String() {
		t.Errorf("%+v %+v:\n%s\nwant\n%s", *show, o, got, want)
	}
}

func linesTo(t *testing.T, o render.Options) (*bytes.Buffer, *render.Writer) {
	t.Helper()
	b := &bytes.Buffer{}
	w, err := render.New(b, storeLogSchema, o)
	if err != nil {
		t.Fatal(err)
	}
	return b, w
}

// Properties that no producer writes are shown as the map of them shows them.
func TestRecordLinesOfOddProperties(t *testing.T) {
	for _, props := range []string{
		"", "a\x01", "\x01b", "TAGS\x01x\x02TAGS\x01y\x02", "KEYS\x01 a  b \x02", "b\x012\x02a\x011\x02b\x013", "TAGS\x01x\x02TAGS\x01\x02",
		"XTAGS\x01no\x02", "a\x01\"<\xff\xe2\x80\xa8\x00\t\x02", "a\x01b\x01c\x02\x02\x02",
	} {
		v := recordWith(t, props)
		for _, o := range []render.Options{{Stream: true}, {Stream: true, Form: render.FormNDJSON}} {
			show := &messageFlags{body: "text"}
			want, w := linesTo(t, o)
			if err := show.storeRecordRows(v, inspect.Match{}, w.Lean(), func(row []any) error { return w.Row(row...) }); err != nil {
				t.Fatal(err)
			}
			got, w := linesTo(t, o)
			line, err := show.format(w, inspect.Match{})()(nil, v)
			if err == nil {
				err = w.Lines(line)
			}
			if err != nil || got.String() != want.String() {
				t.Errorf("%q: %v\n%s\nwant\n%s", props, err, got, want)
			}
		}
	}
}

func recordWith(t testing.TB, props string) message.View {
	t.Helper()
	host := netip.MustParseAddrPort("10.1.2.3:10911")
	rec := message.Record{
		Topic: []byte("ORDERS"), QueueID: 3, QueueOffset: 7, PhysicalOffset: 4096, Body: []byte(strings.Repeat(`order "4711" for C:\temp, paid; `, 29)),
		Properties: []byte(props), BornHost: host, StoreHost: host, BornTimestamp: 1767322245678, StoreTimestamp: 1767322245679,
	}
	v, err := message.ParseView(rec.Append(nil, false), message.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func BenchmarkRecordLine(b *testing.B) {
	v := recordWith(b, "KEYS\x01order-4711\x02UNIQ_KEY\x01C000020272F74E0E2F2A9518AA780000\x02TAGS\x01paid\x02")
	for _, form := range []render.Form{render.FormTable, render.FormNDJSON} {
		w, err := render.New(&bytes.Buffer{}, storeLogSchema, render.Options{Stream: true, Form: form})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(form), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(v)))
			format, buf := (&messageFlags{body: "text"}).format(w, inspect.Match{})(), []byte(nil)
			for b.Loop() {
				var err error
				if buf, err = format(buf[:0], v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
