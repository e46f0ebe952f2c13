package timer

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
)

// View is the timer's part of a store directory, read without changing anything and without the store's lock: what a
// running broker writes meanwhile may show in parts. It is for tools.
type View struct {
	Checkpoint    Checkpoint
	HasCheckpoint bool
	Metrics       Metrics
	HasMetrics    bool
	Wheels        []WheelFile
	Log           []LogFile
	Foreign       []LogFile // in its directory, with names at which no file of it begins
	FileBytes     int64     // of a file of the timer log, 0 when there is none
	PrecisionMs   int64     // as the slots tell, 0 when they do not

	fs   vfs.FS
	root string
}

// WheelFile is the file timerwheel or one of its snapshots.
type WheelFile struct {
	Name    string
	Bytes   int64
	Flushed int64 // of a snapshot: the position of the timer log it knows, -1 for timerwheel itself
}

// LogFile is one file of the timer log.
type LogFile struct {
	Start, Bytes int64
}

// OpenView reads what there is of the timer in a store directory. A part that is missing is none; a part that cannot be
// read is an error.
func OpenView(fsys vfs.FS, root string) (*View, error) {
	v := &View{fs: fsys, root: root}
	var err error
	if v.Checkpoint, v.HasCheckpoint, err = ReadCheckpoint(fsys, root); err != nil {
		return nil, err
	}
	if err := v.readMetrics(); err != nil {
		return nil, err
	}
	if err := v.findWheels(); err != nil {
		return nil, err
	}
	starts, err := logStarts(fsys, logDir(root))
	if err != nil {
		return nil, err
	}
	l := &files{dir: logDir(root)}
	for _, start := range starts {
		st, err := fsys.Stat(l.path(start))
		if err != nil {
			return nil, fmt.Errorf("cannot read timer log: %w", err)
		}
		v.Log = append(v.Log, LogFile{start, st.Size()})
		v.FileBytes = max(v.FileBytes, st.Size())
	}
	if len(starts) > 1 && starts[1]-starts[0] >= v.FileBytes {
		v.FileBytes = starts[1] - starts[0]
	}
	v.leaveOutForeign()
	return v, v.findPrecision()
}

// leaveOutForeign takes the files out of the log whose names are no place where one of its files begins.
func (v *View) leaveOutForeign() {
	v.Log = slices.DeleteFunc(v.Log, func(f LogFile) bool {
		foreign := v.FileBytes > 0 && f.Start%v.FileBytes != 0
		if foreign {
			v.Foreign = append(v.Foreign, f)
		}
		return foreign
	})
}

// readMetrics reads the metrics without moving a bad file away.
func (v *View) readMetrics() error {
	path := metricsPath(v.root)
	for _, p := range []string{path, jsonfile.BackupName(path)} {
		b, err := vfs.ReadFile(v.fs, p)
		if vfs.Absent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read timer metrics: %w", err)
		}
		if m, err := ParseMetrics(b); err == nil {
			v.Metrics, v.HasMetrics = m, true
			return nil
		}
	}
	return nil
}

func (v *View) findWheels() error {
	snaps, err := snapshots(v.fs, v.root)
	if err != nil {
		return fmt.Errorf("cannot read timer wheel: %w", err)
	}
	names := []WheelFile{{Name: "timerwheel", Flushed: -1}}
	for _, pos := range snaps {
		names = append(names, WheelFile{Name: "timerwheel." + strconv.FormatInt(pos, 10), Flushed: pos})
	}
	for _, w := range names {
		st, err := v.fs.Stat(filepath.Join(v.root, w.Name))
		if vfs.Absent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read timer wheel: %w", err)
		}
		w.Bytes = st.Size()
		v.Wheels = append(v.Wheels, w)
	}
	return nil
}

// findPrecision takes the precision under which the slots are nearest to the checkpoint.
func (v *View) findPrecision() error {
	votes := map[int64]int{}
	for _, w := range v.Wheels {
		err := v.Slots(w, func(_ int, s Slot) bool {
			for _, p := range precisions {
				if d := s.Tick*p - v.Checkpoint.ReadTime; d >= -Slots*p && d <= Slots*p {
					votes[p]++
				}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	for p, n := range votes {
		if n > votes[v.PrecisionMs] {
			v.PrecisionMs = p
		}
	}
	return nil
}

// Slots calls f with every slot of a wheel's file that was ever used, in the order of the file, until f returns false. A
// slot that lies where its tick does not belong is damaged: compare index with SlotIndex.
func (v *View) Slots(w WheelFile, f func(index int, s Slot) bool) error {
	file, err := v.fs.Open(filepath.Join(v.root, w.Name))
	if err != nil {
		return fmt.Errorf("cannot read timer wheel: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if size, err := file.Size(); err != nil || size != WheelBytes {
		return err
	}
	more := true
	err = eachPage(file, func(off int64, b []byte) {
		for o := 0; o < len(b) && more; o += SlotSize {
			if s := DecodeSlot(b[o:]); s != (Slot{}) {
				more = f(int((off+int64(o))/SlotSize), s)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("cannot read timer wheel: %w", err)
	}
	return nil
}

// SlotIndex is where the slot of a tick lies in the wheel.
func SlotIndex(tick int64) int { return index(tick) }

// Units calls f with every unit of the timer log from a position on, until f returns false. It returns the position where
// there is no unit any more.
func (v *View) Units(from int64, f func(pos int64, u Unit) bool) (end int64, err error) {
	l, err := v.openLog()
	if err != nil || l == nil {
		return 0, err
	}
	end, err = l.scan(max(from, l.min()), l.end, f)
	return end, errors.Join(err, l.close())
}

// Chain calls f with the units of a slot, the newest first, until f returns false. Errors: *UnitError where the chain is
// broken.
func (v *View) Chain(s Slot, f func(pos int64, u Unit) bool) error {
	l, err := v.openLog()
	if err != nil || l == nil {
		return err
	}
	for pos := s.Last; pos != NoPos; {
		u, err := l.unit(pos)
		if err == nil && u.Prev >= pos {
			err = &UnitError{Pos: pos, What: fmt.Sprintf("the unit before it is at %d", u.Prev)}
		}
		if errors.Is(err, errOutside) || errors.Is(err, errBlank) {
			err = &UnitError{Pos: pos, What: err.Error()}
		}
		if err != nil {
			return errors.Join(err, l.close())
		}
		if !f(pos, u) {
			break
		}
		pos = u.Prev
	}
	return l.close()
}

func (v *View) openLog() (*files, error) {
	if v.FileBytes < UnitSize+blankSize {
		return nil, nil
	}
	return openFiles(readOnly{v.fs, v.Foreign}, logDir(v.root), v.FileBytes)
}

// readOnly opens for reading whatever is asked for.
type readOnly struct {
	vfs.FS
	hidden []LogFile
}

// ReadDir lists a directory without the files that are none of the log's.
func (r readOnly) ReadDir(dir string) ([]fs.DirEntry, error) {
	all, err := r.FS.ReadDir(dir)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool {
		return slices.ContainsFunc(r.hidden, func(f LogFile) bool { return e.Name() == fmt.Sprintf("%020d", f.Start) })
	}), err
}

// OpenFile opens a file for reading.
func (r readOnly) OpenFile(name string, _ int) (vfs.File, error) { return r.Open(name) }

// Waiting is how many messages the newest wheel holds of slots that the checkpoint has not passed, less the cancellations with
// them.
func (v *View) Waiting() (n int64, err error) {
	if len(v.Wheels) == 0 {
		return 0, nil
	}
	read := v.Checkpoint.ReadTime
	err = v.Slots(v.Wheels[len(v.Wheels)-1], func(i int, s Slot) bool {
		if SlotIndex(s.Tick) == i && s.Tick*v.PrecisionMs >= read {
			n += int64(s.Num)
		}
		return true
	})
	return max(n, 0), err
}
