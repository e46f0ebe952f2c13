package ha

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"mqx/internal/vfs"
)

// Bounds of the role.
const (
	roleFileMost = 1 << 20
	epochsKept   = 1000 // Apache's replicas take no more of them in one handshake
)

// Errors of RoleState.Promote.
var (
	ErrOldEpoch   = errors.New("the epoch of a promotion must be above all that are known")
	ErrCutPending = errors.New("its log is being cut")
)

// RoleState is what a broker has durable about its part in its group (docs/format/ha.md, "The role file"). Its methods are
// the rules of what changes it; they do nothing else.
type RoleState struct {
	// Epoch is that of the newest promotion in the group that this broker knows, 0 before the first.
	Epoch int64 `json:"epoch"`
	// Role and ID count instead of what the configuration says, as long as that says Instead.
	Role    string       `json:"role,omitempty"`
	ID      int64        `json:"brokerId,omitempty"`
	Instead *RoleInstead `json:"instead,omitempty"`
	// Pending is what is to be done with the log before the next start serves.
	Pending *RolePending `json:"pending,omitempty"`
	// Fenced is the master that has taken this one's place.
	Fenced *RoleRival `json:"fenced,omitempty"`
	// Number is the brokerId that the broker had before its first change of role; nil until then. It keeps it, whatever ids it
	// has later, so that no two brokers are promoted with one epoch (internal/ballot).
	Number *int64      `json:"number,omitempty"`
	Epochs []RoleEpoch `json:"epochs,omitempty"` // of its log, oldest first
}

// RoleInstead is what a configuration said when another role was given.
type RoleInstead struct {
	Role string `json:"role"`
	ID   int64  `json:"brokerId"`
}

// RolePending is what is to be done with a log.
type RolePending struct {
	To      int64  `json:"to"` // -1: nothing is cut
	Wipe    bool   `json:"wipe,omitempty"`
	Discard bool   `json:"discard,omitempty"`
	Name    string `json:"name"` // of the directory that keeps what goes
}

// RoleRival is another master.
type RoleRival struct {
	Epoch int64  `json:"epoch"`
	Addr  string `json:"addr"`
}

// Text is the reason that clients read.
func (r *RoleRival) Text() string {
	return fmt.Sprintf("this broker was the master, and %s has taken its place (epoch %d); mqx admin ha demote makes it a slave", r.Addr, r.Epoch)
}

// RoleEpoch is a promotion: its epoch and where the log ended then.
type RoleEpoch struct {
	Epoch int64 `json:"epoch"`
	Start int64 `json:"start"`
}

// epochUnknown is the beginning of an epoch that the next start fills in: where the log then ends.
const epochUnknown = -1

// LastEpoch is the epoch of the last bytes of a log that ends at end; 0 where there was no promotion before them.
func LastEpoch(epochs []RoleEpoch, end int64) (last int64) {
	for _, e := range epochs {
		if e.Start >= 0 && e.Start < end {
			last = max(last, e.Epoch)
		}
	}
	return last
}

// BeginEpoch fills in where the epoch of a promotion begins, once its log, which ends at end, is whole. It reports whether
// there was one to fill in.
func (s *RoleState) BeginEpoch(end int64) (changed bool) {
	s.Epochs = slices.Clone(s.Epochs)
	for i := range s.Epochs {
		if s.Epochs[i].Start == epochUnknown {
			s.Epochs[i].Start, changed = end, true
		}
	}
	return changed
}

// Followed notes that the log is a beginning of that of a master with epochs.
func (s *RoleState) Followed(epochs []RoleEpoch) { s.Epochs = epochs[max(0, len(epochs)-epochsKept):] }

// Cut notes that what was pending is done.
func (s *RoleState) Cut() {
	if p := s.Pending; p != nil && p.To >= 0 {
		s.Epochs = slices.DeleteFunc(slices.Clone(s.Epochs), func(e RoleEpoch) bool { return e.Start >= p.To })
	}
	s.Pending = nil
}

// Promote makes a slave the master; its log may grow until the stop. Errors: ErrOldEpoch, ErrCutPending.
func (s *RoleState) Promote(epoch int64) error {
	switch {
	case epoch <= s.Epoch:
		return ErrOldEpoch
	case s.Pending != nil:
		return ErrCutPending
	}
	s.Epoch, s.Fenced = epoch, nil
	s.Epochs = append(s.Epochs, RoleEpoch{Epoch: epoch, Start: epochUnknown})
	s.Epochs = s.Epochs[max(0, len(s.Epochs)-epochsKept):]
	return nil
}

// Demote makes a master a slave of one with an epoch. cut is what its next start does with its log, nil for nothing.
func (s *RoleState) Demote(epoch int64, cut *RolePending) {
	s.Epoch, s.Fenced, s.Pending = max(s.Epoch, epoch), nil, cut
}

// GiveUp notes that another master has taken this one's place.
func (s *RoleState) GiveUp(rival RoleRival) {
	s.Fenced, s.Epoch = &rival, max(s.Epoch, rival.Epoch)
}

// Replaced is the master, of those that name servers know, which has taken the place of this one; nil where none has.
func (s *RoleState) Replaced(known []*RoleRival) *RoleRival {
	var worst *RoleRival
	for _, r := range known {
		if r != nil && r.Epoch > s.Epoch && (worst == nil || r.Epoch > worst.Epoch) {
			worst = r
		}
	}
	return worst
}

// Learn is asked by a slave before it follows a master with an epoch, which may itself know, by FencedEpoch above 0, that it
// has been replaced. It reports whether the epoch is news that has to be durable first. An error says that another master
// has taken its place.
func (s *RoleState) Learn(master string, epoch, fencedEpoch int64, fenced string) (news bool, err error) {
	switch {
	case epoch < s.Epoch:
		return false, fmt.Errorf("the master %s has the epoch %d, and the group has been at %d: another master has taken its place", master, epoch, s.Epoch)
	case fencedEpoch > 0:
		return false, fmt.Errorf("the master %s is none any more: %s", master, fenced)
	case epoch > s.Epoch:
		s.Epoch = epoch
		return true, nil
	}
	return false, nil
}

// parseRole reads a role file: the CRC-32 of the JSON behind it, eight hex digits, on a line of its own.
func parseRole(data []byte, into *RoleState) error {
	head, text, ok := bytes.Cut(data, []byte("\n"))
	sum, err := strconv.ParseUint(string(head), 16, 32)
	if !ok || err != nil || len(data) > roleFileMost || crc32.ChecksumIEEE(text) != uint32(sum) {
		return errors.New("it is damaged (the checksum in its first line is another)")
	}
	*into = RoleState{}
	return json.Unmarshal(text, into)
}

func (s *RoleState) encode() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%08x\n", crc32.ChecksumIEEE(text)), text...), nil
}

// RoleFile keeps the RoleState of a broker. It is safe to share.
type RoleFile struct {
	fsys vfs.FS
	path string
	mu   struct {
		sync.Mutex
		RoleState
	}
}

// Load reads the file at path. One that cannot be read stops the start: an epoch that is lost would let two masters in.
func (r *RoleFile) Load(fsys vfs.FS, path string) error {
	r.fsys, r.path = fsys, path
	data, err := vfs.ReadFile(r.fsys, r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		err = parseRole(data, &r.mu.RoleState)
	}
	if err != nil {
		return fmt.Errorf("cannot read the role of this broker %q: %w", r.path, err)
	}
	return nil
}

// Path is that of the file.
func (r *RoleFile) Path() string { return r.path }

// Get is a copy of the state.
func (r *RoleFile) Get() RoleState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.RoleState
}

// Epoch is the newest one known.
func (r *RoleFile) Epoch() int64 { return r.Get().Epoch }

// Change changes the state durably; what change refuses is not changed.
func (r *RoleFile) Change(change func(*RoleState) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.mu.RoleState
	next.Epochs = slices.Clone(next.Epochs)
	if err := change(&next); err != nil {
		return err
	}
	data, err := next.encode()
	if err == nil {
		if err = vfs.MkdirAllDurable(r.fsys, filepath.Dir(r.path)); err == nil {
			err = vfs.WriteFileDurable(r.fsys, r.path, data)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write the role of this broker: %w", err)
	}
	r.mu.RoleState = next
	return nil
}
