package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"mqx/internal/props"
	"mqx/store"
	"mqx/store/ha"
)

const roleFileName = "role.json"

// The state of the role and its rules are the replication's.
type (
	roleState   = ha.RoleState
	roleInstead = ha.RoleInstead
	rolePending = ha.RolePending
	roleRival   = ha.RoleRival
)

// loadRole reads the role and puts it in force. Nothing is served yet.
func (b *Broker) loadRole() error {
	if err := b.role.Load(b.fsys, filepath.Join(b.cfg().Store.RootDir, "mqx", roleFileName)); err != nil {
		return err
	}
	st := b.role.Get()
	cfg := *b.cfg()
	if st.Role == "" || st.Instead == nil || *st.Instead != (roleInstead{Role: cfg.BrokerRole, ID: cfg.BrokerID}) || st.Role == cfg.BrokerRole && st.ID == cfg.BrokerID {
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
	p := b.role.Get().Pending
	if p != nil && !b.cfg().isSlave() {
		return fmt.Errorf("cannot start as %s: %q says that the log is still to be cut or replaced as that of a slave; start it with brokerRole=SLAVE and promote it then", b.cfg().BrokerRole, b.role.Path())
	}
	if p == nil || !p.Wipe {
		return nil
	}
	b.log.Warn("the log of this slave goes, so that it gets that of its master", "kept", !p.Discard, "name", p.Name)
	if err := store.Wipe(sc, p.Name, p.Discard); err != nil {
		return err
	}
	// Offsets of messages that are no longer there; those of the master come with its tables.
	for _, name := range []string{"consumerOffset.json", "consumerOffset.json.bak", "lmqConsumerOffset.json", "lmqConsumerOffset.json.bak"} {
		if err := b.fsys.Remove(b.configFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove offsets: %w", err)
		}
	}
	return b.role.Change(func(s *roleState) error { s.Pending, s.Epochs = nil, nil; return nil })
}

// cutLog does what is pending once the store and the offsets are there. Both are durable before anything else happens.
func (b *Broker) cutLog() error {
	p := b.role.Get().Pending
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
	return b.role.Change(func(s *roleState) error { s.Cut(); return nil })
}

// takeRole gives the broker another role with its next start, which this one then asks for.
func (b *Broker) takeRole(name string, id int64, change func(*roleState) error) (saved string, err error) {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	loaded := *b.configMu.saved
	was := roleInstead{Role: loaded.BrokerRole, ID: loaded.BrokerID}
	set := func(instead roleInstead, change func(*roleState) error) error {
		return b.role.Change(func(s *roleState) error {
			if s.Number == nil {
				s.Number = &was.ID
			}
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
	return where, set(roleInstead{Role: name, ID: id}, func(*roleState) error { return nil })
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
