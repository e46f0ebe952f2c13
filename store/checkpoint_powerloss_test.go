package store

import (
	"errors"
	"testing"

	"mqx/internal/vfs"
)

// The checkpoint under every loss of power: before each operation, with every mixture of sectors, lengths and names that
// are not durable. What is read afterwards is nothing, the checkpoint before or the new one, the new one when the write
// had returned; never a mixture. N003.
func TestCheckpointUnderEveryPowerLoss(t *testing.T) {
	errOff := errors.New("the power is off")
	values := []Checkpoint{
		{},
		{PhysicTime: 1, LogicsTime: 2, IndexTime: 3, MasterFlushed: 4, ConfirmPhys: 5, LogicsPhysOffset: 6},
		{PhysicTime: 1 << 40, LogicsTime: 1 << 41, IndexTime: 1 << 42, MasterFlushed: 1 << 43, ConfirmPhys: 1 << 44, LogicsPhysOffset: 1 << 45},
	}
	states := 0
	for first := 0; ; first++ { // the operation before which the power fails; 0: never
		disk := vfs.NewMem()
		if err := errors.Join(disk.MkdirAll("/s"), disk.SyncDir("/")); err != nil {
			t.Fatal(err)
		}
		written, writing, ops := 0, 0, 0
		lost := false
		look := func() {
			lost = true
			disk.EachPowerLoss(func(left *vfs.Mem) bool {
				states++
				got, ok, err := ReadCheckpoint(left, "/s")
				if err != nil {
					t.Fatalf("operation %d: %v", first, err)
				}
				if ok && got != values[written] && got != values[writing] || !ok && written > 0 {
					t.Errorf("operation %d: read %+v (%v), want number %d or %d", first, got, ok, written, writing)
				}
				return true
			})
		}
		disk.Inject(func(vfs.Op) error {
			if ops++; ops == first {
				look()
			}
			if lost {
				return errOff
			}
			return nil
		})
		err := func() error {
			x, err := openCheckpoint(disk, "/s")
			if err != nil {
				return err
			}
			for writing = 1; writing < len(values); writing++ {
				if err := x.write(values[writing]); err != nil {
					return err
				}
				written = writing
			}
			writing = written
			look()
			return nil
		}()
		switch {
		case first > 0 && ops < first && err == nil:
			t.Logf("%d operations, %d states", ops, states)
			return
		case first > 0 && err == nil:
			t.Fatalf("operation %d failed and nobody was told", first)
		}
	}
}
