package inspect_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"mqx/internal/testkit"
	"mqx/store/inspect"
)

// Queue ids and queue offsets in the heads of records, which have no checksum of their own.
func TestDamageOfHeads(t *testing.T) {
	stores := []string{"basic", "batchcq", "clean_reference", "crash_kill9_quiet", "lmq", "retry_dlq", "roll", "v2", "pop"}
	var mended atomic.Int64
	t.Cleanup(func() {
		if n := mended.Load(); n < 75 {
			t.Errorf("%d of 90 records are again what they were", n)
		}
	})
	for seed := range uint64(90) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 10))
			im, err := readImage(testkit.GoldenStore(t, stores[seed%uint64(len(stores))]))
			if err != nil {
				t.Fatal(err)
			}
			d, err := im.flipHead(rnd)
			if err != nil {
				t.Fatal(err)
			}
			checkDamage(t, im, d, inspect.VerifyOptions{})
			again, err := readImage(im.root)
			if err != nil {
				t.Fatal(err)
			}
			if len(again.recs) == len(im.recs) && slices.EqualFunc(im.recs, again.recs, func(a, b imageRecord) bool { return bytes.Equal(a.raw, b.raw) }) {
				mended.Add(1)
			}
		})
	}
}

// flipHead changes the queue id, the queue offset or the topic of a record.
func (im *image) flipHead(rnd *rand.Rand) (damage, error) {
	r := im.recs[rnd.IntN(len(im.recs))]
	for name, b := range im.log {
		at := r.phys - logStart(name)
		if at < 0 || at >= int64(len(b)) {
			continue
		}
		place, size := at+20, 8
		switch rnd.IntN(6) {
		case 0:
			place, size = at+12, 4
		case 1:
			place, size = at+int64(len(r.raw)-len(r.raw.Properties())-2-len(r.raw.Topic())), len(r.raw.Topic())
		}
		i := rnd.IntN(size)
		if rnd.IntN(2) == 0 {
			i = size - 1
		}
		i += int(place)
		d := damage{cover: im.coverLog(name, int64(i)), hurt: inRange(r.phys, r.end())}
		b = bytes.Clone(b)
		was := binary.BigEndian.Uint64(b[at+20:])
		b[i] ^= byte(1 + rnd.IntN(255))
		d.what = fmt.Sprintf("%s: record at %d of %s/%d, offset %d: now queue %d, offset %d", name, r.phys, r.raw.Topic(), r.raw.QueueID(), was, binary.BigEndian.Uint32(b[at+12:]), binary.BigEndian.Uint64(b[at+20:]))
		return d, os.WriteFile(filepath.Join(im.root, name), b, 0o644)
	}
	return damage{hurt: untouched}, nil
}
