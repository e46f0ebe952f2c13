package broker

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

	"mqx/internal/props"
	"mqx/internal/vfs"
	"mqx/remoting"
	"mqx/store"
)

// Bounds of the role.
const (
	roleFileName = "role.json"
	roleFileMost = 1 << 20
	epochsKept   = 1000 // Apache's replicas take no more of them in one handshake
)

// roleState is what a broker has durable about its part in its group (docs/format/ha.md, "The role file").
type roleState struct {
	// Epoch is that of the newest promotion in the group that this broker knows, 0 before the first.
	Epoch int64 `json:"epoch"`
	// Role and ID count instead of what the configuration says, as long as that says Instead.
	Role    string       `json:"role,omitempty"`
	ID      int64        `json:"brokerId,omitempty"`
	Instead *roleInstead `json:"instead,omitempty"`
	// Pending is what is to be done with the log before the next start serves.
	Pending *rolePending `json:"pending,omitempty"`
	// Fenced is the master that has taken this one's place.
	Fenced *roleRival         `json:"fenced,omitempty"`
	Epochs []remoting.HAEpoch `json:"epochs,omitempty"` // of its log, oldest first
}

type roleInstead struct {
	Role string `json:"role"`
	ID   int64  `json:"brokerId"`
}

type rolePending struct {
	To      int64  `json:"to"` // -1: nothing is cut
	Wipe    bool   `json:"wipe,omitempty"`
	Discard bool   `json:"discard,omitempty"`
	Name    string `json:"name"` // of the directory that keeps what goes
}

type roleRival struct {
	Epoch int64  `json:"epoch"`
	Addr  string `json:"addr"`
}

// text is the reason that clients read.
func (r *roleRival) text() string {
	return fmt.Sprintf("this broker was the master, and %s has taken its place (epoch %d); mqx admin ha demote makes it a slave", r.Addr, r.Epoch)
}

// role keeps the roleState of a broker.
type role struct {
	fsys vfs.FS
	path string
	mu   struct {
		sync.Mutex
		roleState
	}
}

// load reads the file. One that cannot be read stops the start: an epoch that is lost would let two masters in.
func (r *role) load() error {
	data, err := vfs.ReadFile(r.fsys, r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		err = parseRole(data, &r.mu.roleState)
	}
	if err != nil {
		return fmt.Errorf("cannot read the role of this broker %q: %w", r.path, err)
	}
	return nil
}

// parseRole reads a role file: the CRC-32 of the JSON behind it, eight hex digits, on a line of its own.
func parseRole(data []byte, into *roleState) error {
	head, text, ok := bytes.Cut(data, []byte("\n"))
	sum, err := strconv.ParseUint(string(head), 16, 32)
	if !ok || err != nil || len(data) > roleFileMost || crc32.ChecksumIEEE(text) != uint32(sum) {
		return errors.New("it is damaged (the checksum in its first line is another)")
	}
	*into = roleState{}
	return json.Unmarshal(text, into)
}

func (s *roleState) encode() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%08x\n", crc32.ChecksumIEEE(text)), text...), nil
}

// get is a copy of the state.
func (r *role) get() roleState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.roleState
}

// change changes the state durably; what change refuses is not changed.
func (r *role) change(change func(*roleState) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.mu.roleState
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
	r.mu.roleState = next
	return nil
}

func (r *role) epoch() int64 { return r.get().Epoch }

// loadRole reads the role and puts it in force. Nothing is served yet.
func (b *Broker) loadRole() error {
	b.role.fsys, b.role.path = b.fsys, filepath.Join(b.cfg().Store.RootDir, "mqx", roleFileName)
	if err := b.role.load(); err != nil {
		return err
	}
	st := b.role.get()
	cfg := *b.cfg()
	if st.Role == "" || st.Instead == nil || *st.Instead != (roleInstead{cfg.BrokerRole, cfg.BrokerID}) || st.Role == cfg.BrokerRole && st.ID == cfg.BrokerID {
		return nil
	}
	b.log.Warn("this broker has been given another role than its configuration says", "role", st.Role, "id", st.ID, "configured", cfg.BrokerRole, "configured_id", cfg.BrokerID)
	cfg.BrokerRole, cfg.BrokerID = st.Role, st.ID
	b.putConfig(&cfg)
	return nil
}

// wipeLog does what is pending before the store is opened. What is pending for the log of a slave, cutLog's part too, is not
// done to that of a master.
func (b *Broker) wipeLog(sc store.Config) error {
	p := b.role.get().Pending
	if p != nil && !b.cfg().isSlave() {
		return fmt.Errorf("cannot start as %s: %q says that the log is still to be cut or replaced as that of a slave; start it with brokerRole=SLAVE and promote it then", b.cfg().BrokerRole, b.role.path)
	}
	if p == nil || !p.Wipe {
		return nil
	}
	b.log.Warn("the log of this slave goes, so that it gets that of its master", "kept", !p.Discard, "name", p.Name)
	if err := store.Wipe(sc, p.Name, p.Discard); err != nil {
		return err
	}
	// Offsets of messages that are no longer there; those of the master come with its tables.
	for _, name := range []string{"consumerOffset.json", "consumerOffset.json.bak"} {
		if err := b.fsys.Remove(b.configFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove offsets: %w", err)
		}
	}
	return b.role.change(func(s *roleState) error { s.Pending, s.Epochs = nil, nil; return nil })
}

// cutLog does what is pending once the store and the offsets are there. Both are durable before anything else happens.
func (b *Broker) cutLog() error {
	p := b.role.get().Pending
	if p == nil {
		return nil
	}
	if end := b.store.LogEnd(); p.To >= 0 && p.To < end {
		b.log.Warn("the log is cut where it parts from the master's; what goes is kept in mqx/salvage", "at", p.To, "end", end)
		if err := b.store.Truncate(p.To); err != nil {
			return err
		}
	}
	b.offsets.cut(b.store.MaxOffset)
	if err := b.offsets.Save(); err != nil {
		return err
	}
	return b.role.change(func(s *roleState) error {
		if p.To >= 0 {
			s.Epochs = cutEpochs(s.Epochs, p.To)
		}
		s.Pending = nil
		return nil
	})
}

// takeRole gives the broker another role with its next start, which this one then asks for.
func (b *Broker) takeRole(name string, id int64, change func(*roleState) error) (saved string, err error) {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	loaded := *b.configMu.saved
	was := roleInstead{loaded.BrokerRole, loaded.BrokerID}
	set := func(instead roleInstead, change func(*roleState) error) error {
		return b.role.change(func(s *roleState) error {
			s.Role, s.ID, s.Instead = name, id, &instead
			return change(s)
		})
	}
	// 1. Whatever the configuration says, the next start has the new role.
	if err := set(was, change); err != nil {
		return "", err
	}
	// 2. The configuration file says so too, if there is one that can be written.
	next := loaded
	next.BrokerRole, next.BrokerID = name, id
	where, err := b.saveConfig(&next, []props.Entry{{Key: "brokerRole", Value: name}, {Key: "brokerId", Value: strconv.FormatInt(id, 10)}})
	if err != nil || where == "" {
		if err != nil {
			b.log.Warn("the configuration file does not say the new role; "+roleFileName+" does", "error", err)
		}
		return "", nil
	}
	b.configMu.saved = &next
	// 3. From now on the file alone counts.
	return where, set(roleInstead{name, id}, func(*roleState) error { return nil })
}

// ReopenError is what Run returns after a stop so that the broker is started anew, with another role.
type ReopenError struct {
	Why string
	Err error // what went wrong at the stop; nil after an orderly one. The role is another in any case
}

func (e *ReopenError) Error() string {
	text := "the broker is to be started anew: " + e.Why
	if e.Err != nil {
		text += "; its stop has failed: " + e.Err.Error()
	}
	return text
}

// Unwrap is what went wrong at the stop.
func (e *ReopenError) Unwrap() error { return e.Err }

// reopen ends Run with a ReopenError.
func (b *Broker) reopen(why string) {
	select {
	case b.reopening <- why:
	default:
	}
}
