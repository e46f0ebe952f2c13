package inspect

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

const timerProgress = "mqx/timer-progress"

// resetTimer makes a broker build the wheel anew: the wheel goes to the salvage directory, the timer log is cut where a unit
// cannot be, and the checkpoint says that the wheel knows nothing. The checkpoint goes first: whatever is left of the rest is
// then built again, too.
func (a *applier) resetTimer(s *Step) error {
	if s.Timer != nil {
		if err := a.write(a.path(timerCheckFile), append(s.Timer.Append(nil), make([]byte, 4096-7*8)...)); err != nil {
			return err
		}
	}
	if err := a.remove(timerProgress); err != nil {
		return err
	}
	entries, err := a.fs.ReadDir(a.p.Root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name == nameTimerWheel || strings.HasPrefix(name, nameTimerWheel+".") {
			if err := a.moveAway(name, a.p.Salvage+"/"+name); err != nil {
				return err
			}
		}
	}
	if s.From < 0 {
		return nil
	}
	return a.cutTimerLog(s)
}

// cutTimerLog keeps what is behind a position and takes it out of the timer log.
func (a *applier) cutTimerLog(s *Step) error {
	entries, err := a.fs.ReadDir(a.path(nameTimerLog))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		start, ok := fileNumber(e.Name())
		name := path.Join(nameTimerLog, e.Name())
		if !ok || start+s.Size <= s.From && start%max(s.Size, 1) == 0 {
			continue
		}
		if start >= s.From || start%max(s.Size, 1) != 0 {
			if err := a.moveAway(name, a.p.Salvage+"/"+strings.ReplaceAll(name, "/", ".")); err != nil {
				return err
			}
			continue
		}
		if err := a.salvage(name, s.From-start, s.Size, strings.ReplaceAll(name, "/", ".")); err != nil {
			return err
		}
		if err := a.resize(name, s.From-start); err != nil {
			return err
		}
		if err := a.resize(name, s.Size); err != nil {
			return err
		}
	}
	return nil
}
