package message_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"mqx/message"
)

var methods = []message.CompressionType{message.CompressionZlib, message.CompressionLZ4, message.CompressionZstd}

func TestCompressRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		method := rapid.SampledFrom(methods).Draw(t, "method")
		level := rapid.IntRange(-3, 25).Draw(t, "level")
		body := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "body"), rapid.IntRange(1, 2000).Draw(t, "times"))
		out, err := message.Compress([]byte("before"), body, method, level)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(out, []byte("before")) {
			t.Fatal("what stood in dst is lost")
		}
		for _, limit := range []int{len(body), len(body) + 1, 0, math.MaxInt} {
			got, err := message.Decompress(out[len("before"):], method.SysFlag(), limit)
			if err != nil || !bytes.Equal(got, body) {
				t.Fatalf("limit %d: %d bytes, want %d, %v", limit, len(got), len(body), err)
			}
		}
		if len(body) > 1 {
			_, err := message.Decompress(out[len("before"):], method.SysFlag(), len(body)-1)
			if !errors.Is(err, message.ErrDecompressLimit) {
				t.Fatalf("one byte over the limit: %v", err)
			}
		}
	})
}

// A bomb is found out with memory in the order of the limit.
func TestDecompressionBombs(t *testing.T) {
	const limit = 64 << 10
	zeros := make([]byte, 32<<20)
	for _, method := range methods {
		bomb, err := message.Compress(nil, zeros, method, 5)
		if err != nil {
			t.Fatal(err)
		}
		for name, body := range map[string][]byte{
			"one frame":      bomb,
			"several frames": append(compressed(t, method, "small"), bomb...),
		} {
			if method == message.CompressionZlib && name == "several frames" {
				continue // zlib ends with its first stream
			}
			var got []byte
			n := allocated(16*limit, func() { got, err = message.Decompress(body, method.SysFlag(), limit) })
			if !errors.Is(err, message.ErrDecompressLimit) || got != nil {
				t.Errorf("%s, %s: %d bytes, %v", method, name, len(got), err)
			}
			if n > 16*limit {
				t.Errorf("%s, %s: allocates %d bytes at a limit of %d", method, name, n, limit)
			}
		}
	}
}

// allocated returns the bytes that f allocates when the pools have what it needs (the race detector empties them at
// random, so that it takes several tries): of the first try with at most enough, or of the best of many.
func allocated(enough uint64, f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 64 {
		if least <= enough {
			break
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

func compressed(t testing.TB, method message.CompressionType, text string) []byte {
	t.Helper()
	out, err := message.Compress(nil, []byte(text), method, message.CompressionDefaultLevel)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDecompressFlags(t *testing.T) {
	zlib := compressed(t, message.CompressionZlib, "text")
	for _, tt := range []struct {
		name    string
		body    []byte
		sysFlag int32
		want    string
		err     string
	}{
		{"not compressed", []byte("text"), 0x300, "text", ""},
		{"legacy flag", zlib, 0x1, "text", ""},
		{"zlib", zlib, 0x301, "text", ""},
		{"zlib with other flags", zlib, 0x3F9, "text", ""},
		{"LZ4", compressed(t, message.CompressionLZ4, "text"), 0x101, "text", ""},
		{"ZSTD", compressed(t, message.CompressionZstd, "text"), 0x201, "text", ""},
		{"unknown method", zlib, 0x401, "", "cannot decompress body: unknown method 0x400"},
		{"another method", zlib, 0x201, "", "with ZSTD"},
		{"empty zlib", nil, 0x301, "", "with ZLIB: "},
		{"half of zlib", zlib[:8], 0x301, "", "with ZLIB: unexpected EOF"},
		{"half of LZ4", compressed(t, message.CompressionLZ4, "text")[:12], 0x101, "", "with LZ4: unexpected EOF"},
		{"half of ZSTD", compressed(t, message.CompressionZstd, "text")[:10], 0x201, "", "with ZSTD: unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := message.Decompress(tt.body, tt.sysFlag, 1<<20)
			if string(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q, %v; want %q, %s", got, err, tt.want, tt.err)
			}
		})
	}
	if _, err := message.Compress(nil, nil, 0x500, 1); err == nil {
		t.Error("an unknown method compresses")
	}
}

func TestCompressionShared(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			body := bytes.Repeat([]byte{byte(i), 'x', 'y'}, 5000)
			for range 20 {
				for _, method := range methods {
					out, err := message.Compress(nil, body, method, i)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := message.Decompress(out, method.SysFlag(), len(body))
					if err != nil || !bytes.Equal(got, body) {
						t.Errorf("%s: %d bytes, %v", method, len(got), err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestCompressionNames(t *testing.T) {
	for method, want := range map[message.CompressionType]string{
		message.CompressionLegacy: "ZLIB", message.CompressionZlib: "ZLIB", message.CompressionLZ4: "LZ4",
		message.CompressionZstd: "ZSTD", 0x700: "compression 0x700",
	} {
		if got := method.String(); got != want {
			t.Errorf("%#x is %s, want %s", int32(method), got, want)
		}
		if got := message.CompressionOf(method.SysFlag()); got != method {
			t.Errorf("%s comes back as %s", method, got)
		}
	}
}
