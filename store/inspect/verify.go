package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
	"mqx/store"
)

// VerifyOptions say how to verify. The zero value is right.
type VerifyOptions struct {
	// Workers is the number of parts of the log, and then of queues, read at the same time; 0 means one for each
	// processor, at most 4. Beside a broker it is one.
	Workers int
	// DelayLevels is messageDelayLevel; empty means Apache's default. Levels that all records agree on are taken as they are.
	DelayLevels string
	// NoIndex leaves the index out, for brokers with messageIndexEnable=false.
	NoIndex bool
	// LogFileSize is mappedFileSizeCommitLog, for a log of one file that may have been cut. 0 means: as found.
	LogFileSize int64
	// OnProgress is told how many bytes of how many have been read, from several goroutines.
	OnProgress func(done, total int64)

	traits    bool  // count the traits of records
	partBytes int64 // how log files are divided; 0 means partBytes
}

const maxVerifyWorkers = 4

// verifier is one run of Verify.
type verifier struct {
	d     *Dir
	o     VerifyOptions
	ctx   context.Context //nolint:containedctx // of one call of Verify
	found findings

	live, dirty bool // somebody has it open; it was not closed
	ckpt        store.Checkpoint
	hasCkpt     bool
	ckptWrong   bool
	deleted     map[string]int64 // mqx's note: topics whose records below a position are gone
	topics      map[string]bool  // of topics.json; nil when it cannot be read
	ownUnits    bool             // mqx wrote here: units may be up to a second behind
	began       time.Time

	whole    bool // log files are not divided
	fileSize int64
	logMin   int64
	logEnd   int64
	logParts []*logFile
	breaks   []*logBreak // by position, once the log is read
	maxStore int64       // newest store time in the log

	places []*wrongPlace // records whose head is wrong

	timer *timerCheck // set when something of the timer is wrong

	queues *queueTable
	index  *indexCheck
	delays delayTable

	done, total atomic.Int64
	records     int64
	unseen      map[string]int64 // records of topics that are gone
	units       atomic.Int64
	below       atomic.Int64
	fillers     atomic.Int64
	singles     atomic.Int64 // messages in batch queues that were sent alone, and have no unit
}

// Verify reads all of the directory and says what does not agree. It changes nothing and takes no lock; what a broker
// appends meanwhile is not looked at. Errors are those of the disk, and of the context.
func Verify(ctx context.Context, d *Dir, o VerifyOptions) (*Report, error) {
	if o.Workers <= 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), maxVerifyWorkers)
	}
	if d.in.Locked {
		o.Workers = 1 // a broker is working
	}
	v := newVerifier(ctx, d, o)
	err := v.run()
	if errors.Is(err, errUneven) { // file by file then, which takes longer where there are few
		v = newVerifier(ctx, d, o)
		v.whole = true
		err = v.run()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot verify store %q: %w", d.root, err)
	}
	r := &Report{
		InUse: d.in, LogMin: v.logMin, LogEnd: v.logEnd, LogFileSize: v.fileSize, Records: v.records,
		Units: v.units.Load(), Below: v.below.Load(), Entries: v.index.total.Load(), Bytes: v.done.Load(), v: v,
	}
	r.Findings, r.Total = v.found.sorted()
	return r, nil
}

func newVerifier(ctx context.Context, d *Dir, o VerifyOptions) *verifier {
	return &verifier{
		d: d, o: o, ctx: ctx, live: d.in.Locked, dirty: !d.in.Clean(), began: d.o.Clock.Now(),
		unseen: map[string]int64{},
	}
}

func (v *verifier) run() error {
	steps := []func() error{
		v.prepare,
		func() error { return v.index.prepare() },
		v.divideLog,
		v.readLog,
		v.settleLog,
		v.readQueues,
		func() error { return v.index.settle() },
		v.reportBreaks,
		v.checkTimer,
		v.checkConfig,
		v.checkCheckpoint,
		v.notes,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// prepare reads what has to be known before the log is read.
func (v *verifier) prepare() error {
	err := v.shape()
	if err != nil {
		return err
	}
	if v.ckpt, v.hasCkpt, err = v.d.Checkpoint(); err != nil {
		return err
	}
	plain := plainFS{v.d.fs}
	if v.deleted, err = store.DeletedTopics(plain, v.d.root); err != nil && !vfs.Absent(err) {
		if !errors.Is(err, store.ErrStateFile) {
			return err
		}
		v.found.add(&Finding{
			Kind: FindState, File: "mqx/deleted-topics", Offset: -1, Phys: -1, Messages: -1,
			What: "the note of deleted topics cannot be read: " + err.Error(), Mend: "move it away; records of topics that are not in topics.json are not brought back", Derived: true,
		})
	}
	for _, note := range []struct {
		file, of, mend string
		check          func(vfs.FS, string) error
	}{
		{"mqx/stopped", "the last stop", "remove it; the next start searches the log instead", store.CheckStopNote},
		{"mqx/durable", "the last checkpoint", "remove it; the next start searches more of the log instead", store.CheckDurableNote},
		{"mqx/held", "what is held back", "remove it; the next start takes what the queues hold for shown", store.CheckHeldNote},
	} {
		if err := note.check(plain, v.d.root); err != nil && !vfs.Absent(err) {
			if !errors.Is(err, store.ErrStateFile) {
				return err
			}
			v.found.add(&Finding{
				Kind: FindState, File: note.file, Offset: -1, Phys: -1, Messages: 0,
				What: "the note of " + note.of + " cannot be read: " + err.Error(), Mend: note.mend, Derived: true,
			})
		}
	}
	if err := v.readTopics(); err != nil {
		return err
	}
	v.ownUnits = v.d.Has(KindMQX)
	if err := v.delays.init(v.o.DelayLevels); err != nil {
		return err
	}
	if err := v.prepareLog(); err != nil {
		return err
	}
	v.index = &indexCheck{v: v}
	v.queues, err = newQueueTable(v)
	return err
}

// progress counts bytes of the log that were read.
func (v *verifier) progress(n int64) {
	done := v.done.Add(n)
	if v.o.OnProgress != nil {
		v.o.OnProgress(done, max(v.total.Load(), done))
	}
}

// inParallel calls f for the numbers below n, several at a time, and ends at the first error.
func (v *verifier) inParallel(n int, f func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range min(v.o.Workers, n) {
		wg.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// gone reports whether the records of a topic at a position are not to have queues: the topic was deleted.
func (v *verifier) gone(topic string, phys int64) bool {
	return phys < v.deleted[topic]
}

// notes says what is right and worth knowing.
func (v *verifier) notes() error {
	note := func(kind FindingKind, messages int64, format string, args ...any) {
		v.found.add(&Finding{Kind: kind, Note: true, Offset: -1, Phys: -1, Messages: messages, What: fmt.Sprintf(format, args...)})
	}
	switch {
	case v.live:
		note(FindInUse, -1, "%s works on the directory, a broker or another mqx store command; what it appended meanwhile was not looked at", v.d.in.Who())
	case v.dirty:
		note(FindDirty, -1, "the last broker did not close the directory (abort is there); the next start reads the end of the log again")
	}
	total := int64(0)
	for _, n := range v.unseen {
		total += n
	}
	if total > 0 {
		note(FindRecordsUnseen, total, "%s to %s that were deleted, or to queues of an earlier topic of the same name", words.Count(total, "record belongs", "records belong"), words.Count(len(v.unseen), "topic"))
	}
	if n := v.singles.Load(); n > 0 {
		note(FindRecordsUnseen, n, "%s sent alone to topics with batch queues, where Apache's broker lists batches only: clients do not see them", words.Count(n, "message was", "messages were"))
	}
	if n := v.fillers.Load(); n > 0 {
		note(FindFillers, n, "%d queue offsets are marked as having no record", n)
	}
	for _, k := range v.d.Foreign() {
		v.found.add(&Finding{Kind: FindKind, Note: true, File: k.Path, Offset: -1, Phys: -1, Messages: -1, What: k.What + " are not looked into"})
	}
	return nil
}

// fields are the properties of a record that queues and index depend on.
type fields struct {
	uniq, keys, tags, delay, innerNum, lmq, lmqOffsets []byte
}

func newFields() *fields { return &fields{} }

// read takes them out of a record's properties, as message.EachProperty finds them: of several the last one counts, an
// empty one is none.
func (p *fields) read(props []byte) {
	*p = fields{}
	for len(props) > 0 {
		part := props
		if n := bytes.IndexByte(props, message.PropertySeparator); n >= 0 {
			part, props = props[:n:n], props[n+1:]
		} else {
			props = nil
		}
		sep := 0
		for sep < len(part) && part[sep] != message.NameValueSeparator {
			sep++
		}
		if sep == 0 || sep >= len(part)-1 {
			continue
		}
		p.set(part[:sep], part[sep+1:])
	}
}

func (p *fields) set(name, value []byte) {
	switch string(name) {
	case message.PropUniqKey:
		p.uniq = value
	case message.PropKeys:
		p.keys = value
	case message.PropTags:
		p.tags = value
	case message.PropDelay:
		p.delay = value
	case message.PropInnerNum:
		p.innerNum = value
	case message.PropInnerMultiDispatch:
		p.lmq = value
	case message.PropInnerMultiQueueOffset:
		p.lmqOffsets = value
	}
}
