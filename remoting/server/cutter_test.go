package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mqx/remoting"
)

// rawFrame returns a frame with n bytes after its length field, all of them header.
func rawFrame(n int, fill byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	b = append(b, bytes.Repeat([]byte{fill}, n)...)
	if n >= 4 {
		binary.BigEndian.PutUint32(b[4:], uint32(n-4))
	}
	return b
}

type cutterTest struct {
	cutter
	inboundBytes, partialBytes atomic.Int64
}

func newCutterTest(maxFrame int, limit int64) *cutterTest {
	k := &cutterTest{}
	k.max, k.limit, k.inbound, k.partial = maxFrame, limit, &k.inboundBytes, &k.partialBytes
	return k
}

// feedAll cuts the stream in pieces that next chooses and returns the frames.
func (k *cutterTest) feedAll(stream []byte, next func(left int) int) (frames [][]byte, err error) {
	for len(stream) > 0 && err == nil {
		n := min(max(next(len(stream)), 1), len(stream))
		piece := bytes.Clone(stream[:n]) // the loop reuses its buffer
		var bufs [2]*inbuf
		bufs, err = k.cut(piece)
		clear(piece)
		stream = stream[n:]
		for _, b := range bufs {
			if b == nil {
				continue
			}
			for rest := b.b; len(rest) > 0; {
				n, _, ferr := remoting.FrameLen(rest)
				if ferr != nil || n > len(rest) {
					return frames, errors.New("a buffer holds a broken frame")
				}
				frames = append(frames, bytes.Clone(rest[:n]))
				rest = rest[n:]
			}
			b.release()
		}
	}
	return frames, err
}

func (k *cutterTest) checkEmpty(t *testing.T) {
	t.Helper()
	k.drop()
	if in, part := k.inboundBytes.Load(), k.partialBytes.Load(); in != 0 || part != 0 {
		t.Errorf("%d bytes of frames and %d of incomplete ones are still counted", in, part)
	}
}

func TestCutterRandomSplits(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var stream []byte
		var want [][]byte
		for range 1 + rnd.IntN(60) {
			size := 4 + rnd.IntN(64)
			switch rnd.IntN(10) {
			case 0:
				size = rnd.IntN(200_000) + 4
			case 1:
				size = 4
			}
			f := rawFrame(size, byte(rnd.IntN(256)))
			stream, want = append(stream, f...), append(want, f)
		}
		k := newCutterTest(remoting.MaxFrame, 1<<30)
		most := 1 + rnd.IntN(1<<rnd.IntN(18))
		got, err := k.feedAll(stream, func(int) int { return 1 + rnd.IntN(most) })
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d frames of %d", seed, len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("seed %d: frame %d differs", seed, i)
			}
		}
		if k.part != nil {
			t.Errorf("seed %d: something is left over", seed)
		}
		k.checkEmpty(t)
	}
}

func TestCutterRefuses(t *testing.T) {
	good := rawFrame(10, 1)
	for name, tc := range map[string]struct {
		bad  []byte
		want error
	}{
		"over the limit": {binary.BigEndian.AppendUint32(nil, 2000), remoting.ErrFrameTooLarge},
		"over 16 MiB":    {binary.BigEndian.AppendUint32(nil, remoting.MaxFrame-3), remoting.ErrFrameTooLarge},
		"negative":       {[]byte{0xff, 0xff, 0xff, 0xff}, remoting.ErrFrameNegative},
		"zero":           {[]byte{0, 0, 0, 0}, remoting.ErrFrameTooShort},
		"text":           {[]byte("GET / HTTP/1.1\r\n"), remoting.ErrFrameTooLarge},
	} {
		for _, step := range []int{1, 3, 1000} {
			k := newCutterTest(1000, 1<<20)
			got, err := k.feedAll(append(bytes.Clone(good), tc.bad...), func(int) int { return step })
			if !errors.Is(err, tc.want) {
				t.Errorf("%s in steps of %d: error %v, want %v", name, step, err, tc.want)
			}
			if len(got) != 1 || !bytes.Equal(got[0], good) {
				t.Errorf("%s in steps of %d: the frame before it is lost", name, step)
			}
			k.checkEmpty(t)
		}
	}
}

func TestCutterDoesNotTrustLengths(t *testing.T) {
	k := newCutterTest(remoting.MaxFrame, 1<<30)
	head := binary.BigEndian.AppendUint32(nil, remoting.MaxFrame-4)
	if _, err := k.cut(append(head, make([]byte, 96)...)); err != nil {
		t.Fatal(err)
	}
	if n := k.partialBytes.Load(); n > 4096 {
		t.Errorf("100 bytes of a frame of 16 MiB hold %d bytes", n)
	}
	k.checkEmpty(t)
}

func TestCutterMemoryLimit(t *testing.T) {
	k := newCutterTest(remoting.MaxFrame, 100_000)
	stream := rawFrame(1_000_000, 7)
	_, err := k.feedAll(stream, func(int) int { return 30_000 })
	if !errors.Is(err, errInboundFull) {
		t.Fatalf("error %v, want %v", err, errInboundFull)
	}
	// What every connection may hold is left to it.
	k.drop()
	k.partialBytes.Add(1 << 30)
	if _, err := k.cut(rawFrame(3000, 1)[:2000]); err != nil {
		t.Errorf("a small frame when memory is full: %v", err)
	}
	k.partialBytes.Add(-1 << 30)
	k.checkEmpty(t)
}

// FuzzCutter: whatever the split, the frames are the same and nothing is left
// counted.
func FuzzCutter(f *testing.F) {
	f.Add(append(rawFrame(8, 1), rawFrame(100, 2)...), uint64(1))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint64(2))
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 1, 0}, uint64(3))
	f.Add([]byte{0x80, 0, 0, 0}, uint64(4))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		whole := newCutterTest(1<<16, 1<<24)
		want, wantErr := whole.feedAll(stream, func(left int) int { return left })
		whole.checkEmpty(t)
		rnd := rand.New(rand.NewPCG(seed, 2))
		split := newCutterTest(1<<16, 1<<24)
		got, gotErr := split.feedAll(stream, func(int) int { return 1 + rnd.IntN(64) })
		split.checkEmpty(t)
		if !errors.Is(gotErr, wantErr) && !errors.Is(wantErr, gotErr) {
			t.Fatalf("error %v, in one piece %v", gotErr, wantErr)
		}
		if len(got) != len(want) {
			t.Fatalf("%d frames, in one piece %d", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("frame %d differs", i)
			}
		}
	})
}

// A request that finds no room is answered: what an answer needs stays, the
// body goes as it comes, and the frames behind it are whole.
func TestCutterWithoutRoom(t *testing.T) {
	big := remoting.NewRequest(10, nil)
	big.Opaque, big.Body = 77, bytes.Repeat([]byte("b"), 500_000)
	big.Fields.Set("topic", strings.Repeat("t", 100))
	frame, err := big.AppendFrame(nil, remoting.SerializeJSON)
	if err != nil {
		t.Fatal(err)
	}
	after := rawFrame(50, 3)
	for _, step := range []int{300, 5000, 30_000, 1 << 20} {
		k := newCutterTest(remoting.MaxFrame, 100_000)
		if step > len(frame) {
			k.partialBytes.Add(1 << 20) // by others
		}
		got, err := k.feedAll(slices.Concat(frame[:len(frame)-1], frame[len(frame)-1:], after), func(left int) int {
			if left > len(after)+1 && step > len(frame) {
				return left - len(after) - 1
			}
			return step
		})
		if err != nil {
			t.Fatalf("in steps of %d: %v", step, err)
		}
		if len(got) != 2 || !bytes.Equal(got[1], after) {
			t.Fatalf("in steps of %d: %d frames", step, len(got))
		}
		var cmd remoting.Command
		if err := cmd.Decode(got[0]); err != nil || cmd.Opaque != 77 || cmd.Code != 10 || cmd.Body != nil || len(cmd.Fields) != 0 {
			t.Errorf("in steps of %d: %+v %v", step, cmd, err)
		}
		if step > len(frame) {
			k.partialBytes.Add(-1 << 20)
		}
		k.checkEmpty(t)
	}
}

// A header over the limit is refused when its length has come, before the rest is taken in.
func TestCutterRefusesHeaderEarly(t *testing.T) {
	head := []byte{0, 0x30, 0, 0, 0, 0x20, 0, 0} // 3 MiB, 2 MiB of them header
	for _, step := range []int{1, 8} {
		k := newCutterTest(4<<20, 1<<20)
		if _, err := k.feedAll(head, func(int) int { return step }); !errors.Is(err, remoting.ErrHeaderTooLarge) {
			t.Errorf("in steps of %d: %v", step, err)
		}
		k.checkEmpty(t)
	}
}
