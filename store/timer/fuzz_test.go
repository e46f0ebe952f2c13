package timer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"mqx/internal/testkit"
)

// The decoders take any bytes, and what they accept encodes to the bytes it was read from.
func FuzzDecode(f *testing.F) {
	root := testkit.GoldenStore(f, "delay_timer")
	for _, name := range []string{"timerlog/00000000000000000000", "config/timercheck", "config/timermetrics"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4*UnitSize)])
	}
	f.Add((&progress{readTime: 1, slotPos: NoPos, queueOffset: 2, need: 3, logEnd: 4, with: [2]uint32{5, 6}}).bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if u, err := DecodeUnit(b); err == nil && !bytes.Equal(u.Append(nil), b[:UnitSize]) {
			t.Errorf("unit %+v", u)
		}
		if len(b) >= SlotSize {
			s := DecodeSlot(b)
			var out [SlotSize]byte
			if s.encode(out[:]); !bytes.Equal(out[:], b[:SlotSize]) {
				t.Errorf("slot %+v", s)
			}
		}
		if c, ok := DecodeCheckpoint(b); ok && len(b) >= CheckpointSize && !bytes.Equal(c.Append(nil), b[:CheckpointSize]) {
			t.Errorf("checkpoint %+v", c)
		}
		if p, ok := decodeProgress(b); ok && !bytes.Equal(p.bytes(), b[:progressSize]) {
			t.Errorf("progress %+v", p)
		}
		_, _ = ParseMetrics(b)
	})
}
