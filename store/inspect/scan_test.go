package inspect_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store/inspect"
)

// A scan by several workers gives what a walk gives, in the same order, from any position, in sound stores and in
// damaged ones.
func TestScanIsAWalk(t *testing.T) {
	inspect.SetPartBytes(t, 8<<10)
	for _, variant := range testkit.GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			l := openGolden(t, variant).Log()
			for _, verify := range []bool{false, true} {
				walk, wantEnd := walked(t, l, verify)
				got, end := scanned(t, l, 0, verify)
				if diff := cmp.Diff(walk, got); diff != "" {
					t.Fatalf("verify %v (-walk +scan):\n%s", verify, diff)
				}
				if end.Reason != wantEnd.Reason || end.Records != wantEnd.Records || end.Last != wantEnd.Last || (end.Offset != wantEnd.Offset && end.Records > 0) {
					t.Errorf("verify %v: end %+v, want %+v", verify, end, wantEnd)
				}
			}
		})
	}
}

type seen struct {
	Off  int64
	What string
}

func digest(rec message.View) string {
	sum := sha256.Sum256(rec)
	return hex.EncodeToString(sum[:8])
}

func walked(t *testing.T, l *inspect.Log, verify bool) ([]seen, inspect.End) {
	t.Helper()
	var out []seen
	end, err := l.Walk(context.Background(), inspect.WalkOptions{
		VerifyBody: verify, VerifyProp: verify,
		OnBreak: func(b inspect.Break) error {
			out = append(out, seen{b.From, string(b.Kind)}, seen{b.To, "to"})
			return nil
		},
	}, func(off int64, rec message.View) error { out = append(out, seen{off, digest(rec)}); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return out, end
}

func scanned(t *testing.T, l *inspect.Log, from int64, verify bool) ([]seen, inspect.End) {
	t.Helper()
	var out []seen
	end, err := l.Scan(context.Background(), inspect.ScanOptions{
		From: from, Workers: 3, Verify: verify,
		OnBreak: func(b inspect.Break) error {
			out = append(out, seen{b.From, string(b.Kind)}, seen{b.To, "to"})
			return nil
		},
	}, func(message.View) bool { return true },
		func(off int64, rec message.View) error { out = append(out, seen{off, digest(rec)}); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return out, end
}

func TestScanFromAnywhere(t *testing.T) {
	inspect.SetPartBytes(t, 8<<10)
	l := openGolden(t, "roll").Log()
	all, _ := walked(t, l, false)
	for off := l.Min(); off < l.Limit(); off += 20011 {
		got, _ := scanned(t, l, off, false)
		if got == nil {
			got = []seen{}
		}
		want := all
		for len(want) > 0 && want[0].Off < off {
			want = want[1:]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("from %d:\n%s", off, diff)
		}
	}
}

func TestScanStops(t *testing.T) {
	inspect.SetPartBytes(t, 8<<10)
	l := openGolden(t, "roll").Log()
	n := 0
	end, err := l.Scan(context.Background(), inspect.ScanOptions{}, func(message.View) bool { return true }, func(int64, message.View) error {
		if n++; n == 3 {
			return inspect.ErrStop
		}
		return nil
	})
	if err != nil || n != 3 || end.Reason != inspect.EndStopped {
		t.Errorf("%d records, %+v, %v", n, end, err)
	}
	broken := errors.New("broken")
	if _, err := l.Scan(context.Background(), inspect.ScanOptions{}, func(message.View) bool { return true }, func(int64, message.View) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Scan(ctx, inspect.ScanOptions{}, func(message.View) bool { return true }, func(int64, message.View) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := inspect.Open(filepath.Join(dir, "none"), inspect.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if _, err := inspect.Open(dir, inspect.Options{}); !errors.Is(err, inspect.ErrNotStore) {
		t.Errorf("an empty directory: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := inspect.Open(file, inspect.Options{}); !errors.Is(err, inspect.ErrNotStore) {
		t.Errorf("a file: %v", err)
	}
}

// Convert gives what a scan gives, the text of several workers in order, breaks between it; it ends with the error of a
// format or of the receiver.
func TestConvertIsAScan(t *testing.T) {
	inspect.SetPartBytes(t, 8<<10)
	for _, variant := range testkit.GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			l, ctx := openGolden(t, variant).Log(), context.Background()
			want, wantEnd := scanned(t, l, 0, true)
			var got []seen
			text := ""
			rows := func() {
				for line := range strings.Lines(text) {
					off, what, _ := strings.Cut(strings.TrimSpace(line), " ")
					n, err := strconv.ParseInt(off, 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, seen{n, what})
				}
				text = ""
			}
			form := func() inspect.Format {
				return func(dst []byte, rec message.View) ([]byte, error) {
					return fmt.Appendf(dst, "%d %s\n", rec.PhysicalOffset(), digest(rec)), nil
				}
			}
			all := func(message.View) bool { return true }
			end, err := l.Convert(ctx, inspect.ScanOptions{
				Workers: 3, Verify: true,
				OnBreak: func(b inspect.Break) error {
					rows()
					got = append(got, seen{b.From, string(b.Kind)}, seen{b.To, "to"})
					return nil
				},
			}, all, form, func(piece []byte) error { text += string(piece); return nil })
			if rows(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" || end.Offset != wantEnd.Offset || end.Reason != wantEnd.Reason {
				t.Errorf("end %+v, want %+v (-scan +convert):\n%s", end, wantEnd, diff)
			}
			if wantEnd.Records == 0 {
				return
			}
			full := errors.New("full")
			if _, err := l.Convert(ctx, inspect.ScanOptions{}, all, form, func([]byte) error { return full }); !errors.Is(err, full) {
				t.Errorf("receiver: %v", err)
			}
			bad := func() inspect.Format { return func([]byte, message.View) ([]byte, error) { return nil, full } }
			if _, err := l.Convert(ctx, inspect.ScanOptions{}, all, bad, func([]byte) error { return nil }); !errors.Is(err, full) {
				t.Errorf("format: %v", err)
			}
		})
	}
}
