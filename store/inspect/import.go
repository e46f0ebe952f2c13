package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/store"
)

// Where an import keeps its things, inside the store directory.
const (
	importJournal = "mqx/import.json"
	importWork    = "mqx/import"
)

// ImportOptions say what to import, and how.
type ImportOptions struct {
	FS    vfs.FS      // nil means vfs.OS
	Clock clock.Clock // nil means clock.System
	// Open opens the lines from their beginning. With Once it can be called only once, and nothing is known of them
	// before.
	Open func() (io.ReadCloser, error)
	Once bool
	// Renumber gives new positions and offsets also to the lines of a whole export.
	Renumber bool
	// Abandon leaves an import of other lines that was interrupted at what it had stored.
	Abandon bool
	// LogFileBytes is mappedFileSizeCommitLog of a new store, when the lines do not say it; 0 means Apache's. The others
	// are those of PlanOptions.
	LogFileBytes int64
	Plan         PlanOptions
	// DelayLevels is messageDelayLevel; "" means Apache's.
	DelayLevels string
	// Agree is asked before anything is changed. An error ends the import with it. Nil agrees to everything.
	Agree func(*ImportPlan) error
	// OnProgress is told how many bytes of lines were read, of how many; total is 0 when that is not known.
	OnProgress func(what string, done, total int64)
}

// ImportPlan is what an import would do, and after it what it did.
type ImportPlan struct {
	Dir   string
	New   bool // the directory becomes a store; else messages are added to one
	Whole bool // the lines are a whole export: the same log comes of them
	Known bool // the lines were read before: the numbers below hold

	Lines    int64            // of the input
	Records  int64            // that become part of the log
	Messages int64            // of them
	Skipped  map[string]int64 // lines by reason
	LogBytes int64            // what the log grows by, blanks included
	Topics   map[string]int32 // queues that each topic needs
	// NewTopics get an entry in topics.json, MoreQueues are topics that have too few queues in theirs.
	NewTopics, MoreQueues []string
	First, Last           int64 // store times of the lines, ms; 0 for none
	Resumed               int64 // lines that an import of the same input had stored before it was interrupted
	Finished              bool  // an import that was interrupted was only to be put in its place
	From, To              int64 // positions of the log that were written

	fileBytes int64
}

// The reasons why Import leaves out a line.
const (
	SkipSystem = "system-topic" // its content speaks of positions in another store
	SkipHalf   = "half-message" // prepared or rolled back
	SkipBatch  = "batch-queue"  // the topic has batch queues in the store
)

// LineError says that a line of an import is none, or cannot become a record.
type LineError struct {
	Line int64 // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// Errors of an import.
var (
	// ErrGap says that lines of a whole export are missing, or are in another order.
	ErrGap = errors.New("the lines are no whole log")
	// ErrOtherImport says that an import of other lines was interrupted in the directory.
	ErrOtherImport = errors.New("an import of other lines was interrupted here")
	// ErrNotStopped says that the last broker did not close the store.
	ErrNotStopped = errors.New("the store was not stopped cleanly")
	// ErrNoTarget says that a directory is neither empty nor a store.
	ErrNoTarget = errors.New("the directory is neither empty nor a store")
	// ErrNoLines says that there was no line to make a store of.
	ErrNoLines = errors.New("there is no line to import")
)

// Import makes a store of lines of JSON (docs/format/export.md), or adds them to one that no broker has open.
//
// Into a directory that is empty or does not exist it is all or nothing: the store is built in mqx/import and put in its
// place when it is whole; an import that was interrupted before that begins anew, one after it is finished. Lines of a
// whole export make the same log again, to the byte; others get positions and queue offsets of their own and keep their
// times. Into a store it goes on where one of the same lines was interrupted: what was stored stays, each message once.
// There messages get the time of the import as store time.
//
// Errors: *store.LockedError, *LineError, *NoSpaceError, *UnsupportedError, ErrGap, ErrOtherImport, ErrNotStopped,
// ErrNoTarget, ErrNoLines (into a new directory only), what Agree returned, and those of the disk.
func Import(ctx context.Context, root string, o ImportOptions) (p *ImportPlan, err error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.OnProgress == nil {
		o.OnProgress = func(string, int64, int64) {}
	}
	i := &importer{ctx: ctx, root: root, o: o, fs: o.FS}
	if i.delays, err = levelDelays(o.DelayLevels); err != nil {
		return nil, err
	}
	isNew, err := i.look()
	if err == nil {
		i.plan = &ImportPlan{Dir: root, New: isNew, Skipped: map[string]int64{}, Topics: map[string]int32{}}
		if isNew {
			err = i.runNew()
		} else {
			err = i.runAppend()
		}
	}
	if err != nil {
		return i.plan, fmt.Errorf("cannot import into %q: %w", root, err)
	}
	return i.plan, nil
}

type importer struct {
	ctx    context.Context //nolint:containedctx // of one call of Import
	root   string
	o      ImportOptions
	fs     vfs.FS
	plan   *ImportPlan
	delays map[int]int64
}

// importState is the journal.
type importState struct {
	New    bool   `json:"new"`
	Moving bool   `json:"moving"` // the store is built: what is left is to put it in its place
	Start  int64  `json:"start"`  // end of the log before the import
	First  uint64 `json:"first"`  // hash of the first line
	// Records and Messages are those of the store that is built.
	Records, Messages int64
}

func (i *importer) path(name string) string {
	return filepath.Join(i.root, filepath.FromSlash(name))
}

// look tells whether the directory is to become a store, and refuses what it cannot.
func (i *importer) look() (isNew bool, err error) {
	entries, err := i.fs.ReadDir(i.root)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	empty := true
	for _, e := range entries {
		empty = empty && (e.Name() == nameLock || e.Name() == "mqx" || e.Name() == "lost+found")
	}
	st, err := i.journal()
	if err != nil {
		return false, err
	}
	if empty || st != nil && st.New {
		return true, i.locked()
	}
	d, err := Open(i.root, Options{FS: i.fs, Clock: i.o.Clock})
	if errors.Is(err, ErrNotStore) {
		return false, ErrNoTarget
	}
	if err != nil {
		return false, err
	}
	err = d.Close()
	for _, k := range d.Foreign() {
		return false, errors.Join(&UnsupportedError{i.root, k}, err)
	}
	if u := d.InUse(); u.Locked {
		return false, errors.Join(&store.LockedError{Dir: i.root, PID: u.PID}, err)
	} else if u.Abort && (st == nil || st.New) {
		return false, errors.Join(ErrNotStopped, err)
	}
	return false, err
}

// locked refuses a directory that somebody works on, before a lock file is made there.
func (i *importer) locked() error {
	t, ok := i.fs.(vfs.LockTester)
	if !ok {
		return nil
	}
	if pid, locked, err := t.LockedBy(i.path(nameLock)); err == nil && locked {
		return &store.LockedError{Dir: i.root, PID: vfs.Holder(i.fs, i.path(nameLock), pid)}
	}
	return nil
}

// journal reads what an import that did not end left; nil when there was none.
func (i *importer) journal() (*importState, error) {
	b, err := vfs.ReadFile(i.fs, i.path(importJournal))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st := &importState{}
	if err := json.Unmarshal(b, st); err != nil {
		return nil, fmt.Errorf("cannot read journal of an import %q: %w", i.path(importJournal), err)
	}
	return st, nil
}

func (i *importer) note(st importState) error {
	b, err := json.MarshalIndent(&st, "", "  ")
	if err != nil {
		return err
	}
	if err := vfs.MkdirAllDurable(i.fs, i.path("mqx")); err != nil {
		return err
	}
	return vfs.WriteFileDurable(i.fs, i.path(importJournal), b)
}

func (i *importer) forget() error {
	if err := i.fs.Remove(i.path(importJournal)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return i.fs.SyncDir(i.path("mqx"))
}

// space refuses what does not fit on the volume, with a reserve of 1 %. dir exists.
func (i *importer) space(dir string, need int64) error {
	u, err := i.fs.Usage(dir)
	if err != nil {
		return fmt.Errorf("cannot tell the free space: %w", err)
	}
	if u.Total > 0 && need > u.Free-u.Total/100 {
		return &NoSpaceError{i.root, need, max(u.Free-u.Total/100, 0)}
	}
	return nil
}

// perMessage is what queues and index take for a message, about: a unit, and entries for its id, its tag and a key.
const perMessage = 20 + 3*20

func (p *ImportPlan) bytes() int64 { return p.LogBytes + p.Messages*perMessage }

// levelDelays is the delay of each level in ms.
func levelDelays(levels string) (map[int]int64, error) {
	if levels == "" {
		levels = store.DefaultConfig().MessageDelayLevel
	}
	list, err := store.ParseDelayLevels(levels)
	if err != nil {
		return nil, fmt.Errorf("messageDelayLevel: %w", err)
	}
	out := map[int]int64{}
	for n, d := range list {
		out[n+1] = d.Milliseconds()
	}
	return out, nil
}

// skip tells why a line gets no new place, "" when it does.
func skip(l *message.Line) string {
	if t := l.SysFlag & message.FlagTransactionMask; t == message.TransactionPrepared || t == message.TransactionRollback {
		return SkipHalf
	}
	if message.IsSystemTopic(l.Topic) && !message.IsRetry(l.Topic) && !message.IsDLQ(l.Topic) && l.Topic != message.TopicBenchmark {
		return SkipSystem
	}
	if l.Topic == fillerTopic || l.Properties[PropSkipped] != "" {
		return SkipPlaceholder
	}
	return ""
}
