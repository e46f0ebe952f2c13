package inspect

import (
	"fmt"
	"strconv"
	"strings"

	"mqx/internal/vfs"
)

// InUse says whether somebody works on the directory, and how the last one left it.
type InUse struct {
	// Locked says that a process holds the lock now. LockKnown is false when the system does not say.
	Locked, LockKnown bool
	// PID is the process that holds the lock, or that left abort behind; 0 when nobody says.
	PID int
	// Abort says that the file abort exists: the store is in use, or was not closed.
	Abort bool
}

// Clean reports that the last broker closed the store and that no other one has it open.
func (u InUse) Clean() bool { return !u.Abort && !u.Locked }

// InUse is what the lock and abort said when the directory was opened.
func (d *Dir) InUse() InUse { return d.in }

// maxPIDFile bounds the file abort.
const maxPIDFile = 64

func (d *Dir) lookInUse() (InUse, error) {
	var u InUse
	if t, ok := d.fs.(vfs.LockTester); ok && !d.o.Owned {
		pid, locked, err := t.LockedBy(d.Path(nameLock))
		if err == nil { // a lock file that cannot be opened says nothing
			u.PID, u.Locked, u.LockKnown = pid, locked, true
		}
	}
	named := u.PID > 0
	st, ok, err := d.stat(nameAbort)
	if err != nil {
		return u, err
	}
	if !ok {
		_, err := d.fs.Stat(d.Path(nameAbort))
		u.Abort = err == nil // whatever lies there, brokers take it for the mark
	}
	u.Abort = u.Abort || ok
	if ok && u.PID == 0 && st.Size <= maxPIDFile {
		if b, _, err := d.read(nameAbort, maxPIDFile); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && pid > 0 {
				u.PID = pid
			}
		}
	}
	if u.Locked && !named { // abort may be of one that is gone
		u.PID = vfs.Holder(d.fs, d.Path(nameLock), u.PID)
	}
	return u, nil
}

// Who is who has the directory open.
func (u InUse) Who() string {
	if u.PID > 0 {
		return fmt.Sprintf("process %d", u.PID)
	}
	return "a process"
}
