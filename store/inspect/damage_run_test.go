package inspect_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"mqx/internal/testkit"
	"mqx/store/inspect"
)

// soundStores are the stores of Apache's broker that are damaged; those of mqx are added by mqxStores.
var soundStores = []string{"basic", "batch", "batchcq", "clean_reference", "compress", "crash_kill9_quiet", "crash_midwrite", "cqext", "ipv6", "lmq", "pop", "propcrc", "retry_dlq", "roll", "trans", "v2"}

// seeds is how many damages are tried: MQX_DAMAGE_SEEDS, else 240; MQX_DAMAGE_FROM is the first.
func seeds(t *testing.T) (from, n uint64) {
	t.Helper()
	n = 240
	if testing.Short() {
		n = 60
	}
	for name, p := range map[string]*uint64{"MQX_DAMAGE_SEEDS": &n, "MQX_DAMAGE_FROM": &from} {
		if text := os.Getenv(name); text != "" {
			v, err := strconv.ParseUint(text, 10, 63)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*p = v
		}
	}
	return from, n
}

// Whatever is damaged: verify misses nothing that something covers and invents nothing; after a repair every record that
// was not touched is there, and nothing is found any more.
func TestDamage(t *testing.T) {
	from, n := seeds(t)
	var counts [3]atomic.Int64
	try := func(seed uint64) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			counts[tryDamage(t, seed)].Add(1)
		})
	}
	for seed := from; seed < from+n; seed++ {
		try(seed)
	}
	for _, seed := range onceWrong {
		try(seed)
	}
	t.Cleanup(func() {
		t.Logf("%d damages: %d covered by nothing, %d by some readings, %d by something", n, counts[none].Load(), counts[gray].Load(), counts[must].Load())
	})
}

// onceWrong are damages after which a repair once took sound records for lost: a file of a wrong name that overlaps another
// one, files that changed places with a preallocated one, a unit that points into a broken record of another queue.
var onceWrong = []uint64{1200, 1297, 1358}

// Extension units, more often than chance has them.
func TestDamageOfExtUnits(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			root := testkit.GoldenStore(t, "cqext")
			im, err := readImage(root)
			if err != nil {
				t.Fatal(err)
			}
			d, err := im.flipExt(rand.New(rand.NewPCG(seed, 8)), im.extUnits())
			if err != nil {
				t.Fatal(err)
			}
			t.Log(d.what)
			if r := verify(t, root); r.Damaged() != (d.cover == must) {
				t.Errorf("damaged: %v, covered: %v", r.Damaged(), d.cover == must)
			}
			repair(t, root)
			if r := verify(t, root); r.Damaged() {
				t.Errorf("after the repair: %+v", r.Findings[0])
			}
			checkSound(t, im, d)
		})
	}
}

// Batch queues, queues of light topics, and the log of both, more often than chance has them.
func TestDamageOfBatchAndLightQueues(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			where := []struct{ store, only string }{
				{"batchcq", "batchconsumequeue/"}, {"lmq", "consumequeue/%LMQ%"}, {"batchcq", "commitlog/"}, {"lmq", "commitlog/"},
			}[seed%4]
			root := testkit.GoldenStore(t, where.store)
			im, err := readImage(root)
			if err != nil {
				t.Fatal(err)
			}
			im.only = where.only
			rnd := rand.New(rand.NewPCG(seed, 9))
			do := []func(*rand.Rand) (damage, error){im.flip, im.flip, im.cut, im.remove}[seed/4%4]
			d, err := do(rnd)
			if err != nil {
				t.Fatal(err)
			}
			checkDamage(t, im, d, inspect.VerifyOptions{})
		})
	}
}

func (im *image) flip(rnd *rand.Rand) (damage, error) { return im.flips(rnd, 1) }

func tryDamage(t *testing.T, seed uint64) cover {
	rnd := rand.New(rand.NewPCG(seed, 6))
	o := inspect.VerifyOptions{}
	if seed%2 == 1 {
		o = inspect.InParts(16 << 10) // several workers in a file
	}
	var root string
	if k := rnd.IntN(len(soundStores) + 6); k < len(soundStores) {
		root = testkit.GoldenStore(t, soundStores[k])
		t.Log("store", soundStores[k])
	} else {
		root = mqxStore(t, uint64(k%3))
		t.Log("store of mqx", k%3)
	}
	im, err := readImage(root)
	if err != nil {
		t.Fatal(err)
	}
	d, err := im.newDamage(rnd)
	if err != nil {
		t.Fatal(err)
	}
	checkDamage(t, im, d, o)
	return d.cover
}

// checkDamage verifies and repairs a store that was damaged.
func checkDamage(t *testing.T, im *image, d damage, o inspect.VerifyOptions) {
	t.Helper()
	root := im.root
	t.Log(d.what)
	r := verifyWith(t, root, o)
	found := 0
	for _, f := range r.Findings {
		if !f.Note || f.Kind == inspect.FindQueueBehind || f.Kind == inspect.FindIndexBehind {
			found++
			t.Logf("found: note=%v %s %s@%d %s %v", f.Note, f.Kind, f.File, f.Offset, f.What, f.Affected)
		}
	}
	switch {
	case d.cover == must && found == 0:
		t.Error("missed")
	case d.cover == none && found > 0:
		t.Error("there is nothing")
	}
	repairWith(t, root, o)
	for _, f := range verifyWith(t, root, o).Findings {
		if !f.Note {
			t.Errorf("after the repair: %s %s@%d %s", f.Kind, f.File, f.Offset, f.What)
		}
	}
	checkSound(t, im, d)
}

// checkSound compares the records that were not touched with what is there now.
func checkSound(t *testing.T, im *image, d damage) {
	t.Helper()
	size := int64(0)
	for _, b := range im.log {
		size = max(size, int64(len(b)))
	}
	missing := 0
	for _, r := range im.recs {
		if d.hurt(r.phys, r.end()) {
			continue
		}
		name := inspect.FileName(r.phys - r.phys%size)
		f, err := os.Open(filepath.Join(im.root, "commitlog", name))
		if err != nil {
			t.Errorf("a sound record at %d is lost: %v", r.phys, err)
			return
		}
		b := make([]byte, r.size)
		_, err = f.ReadAt(b, r.phys%size)
		_ = f.Close()
		if err != nil || !bytes.Equal(b, r.raw) {
			missing++
			if missing == 1 {
				t.Errorf("a sound record at %d is lost (%v)", r.phys, err)
			}
		}
	}
	if missing > 1 {
		t.Errorf("%d sound records are lost", missing)
	}
}
