package inspect

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"mqx/internal/testkit"
	"mqx/internal/vfs"
)

// Who works for a time and is to take a share of it rests for the rest of it, within a bound.
func TestRestAfter(t *testing.T) {
	for _, c := range []struct {
		worked time.Duration
		share  float64
		want   time.Duration
	}{
		{time.Millisecond - 1, 0.2, 0},
		{time.Millisecond, 0.2, 4 * time.Millisecond},
		{2 * time.Millisecond, 0.5, 2 * time.Millisecond},
		{time.Second, 0.2, maxRest},
	} {
		if got := restAfter(c.worked, c.share); got != c.want {
			t.Errorf("restAfter(%v, %v) = %v, want %v", c.worked, c.share, got, c.want)
		}
	}
}

// countingFile counts what is read from it.
type countingFile struct {
	vfs.File
	reads *[]int
}

func (f countingFile) ReadAt(b []byte, off int64) (int, error) {
	*f.reads = append(*f.reads, len(b))
	return f.File.ReadAt(b, off)
}

// A paced file is read in small pieces, gives the same bytes and errors, and rests between the pieces.
func TestPacedFile(t *testing.T) {
	mem := vfs.NewMem()
	want := bytes.Repeat([]byte("0123456789"), 10_000)
	f, err := mem.OpenFile("/f", 0x42)
	if err == nil {
		_, err = f.WriteAt(want, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	rests := time.Duration(0)
	p := newPacer(0.25, func() time.Time { return now }, func(d time.Duration) { rests += d; now = now.Add(d) })
	var reads []int
	g := paced(countingFile{f, &reads}, p)
	got := make([]byte, len(want))
	if n, err := g.ReadAt(got, 0); n != len(want) || err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	if slices.Max(reads) > pacedRead || len(reads) < len(want)/pacedRead {
		t.Errorf("read in pieces of %v", reads)
	}
	if rests != 0 {
		t.Errorf("rested %v without any time passing", rests)
	}
	now = now.Add(3 * time.Millisecond)
	if n, err := g.ReadAt(got, 1); n != len(want)-1 || err == nil {
		t.Errorf("read %d bytes over the end, %v", n, err)
	}
	if rests != 9*time.Millisecond {
		t.Errorf("rested %v, want 9 ms for 3 ms of work and a quarter of the time", rests)
	}
}

// At a pace verify finds the same.
func TestVerifyPaced(t *testing.T) {
	d, err := Open(testkit.GoldenStore(t, "crash_body_mid_lastfile"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	r, err := Verify(t.Context(), d, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.SetPace(0.9)
	s, err := Verify(t.Context(), d, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) == 0 || len(r.Findings) != len(s.Findings) || r.Records != s.Records || r.Bytes != s.Bytes {
		t.Errorf("paced %+v, else %+v", s, r)
	}
}
