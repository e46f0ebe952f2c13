package inspect

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/message"
	"mqx/store"
	"mqx/store/consumequeue"
	"mqx/store/timer"
)

// StepKind names what a step of a repair does.
type StepKind string

// Kinds of steps, in the order in which they are done.
const (
	StepRename     StepKind = "rename-log"     // give a log file the name of what it holds
	StepMoveAway   StepKind = "move-away"      // move a file to the salvage directory
	StepTrim       StepKind = "trim-log"       // cut a log file that is too long
	StepExtend     StepKind = "extend-log"     // fill a log file that is too short up with zeros
	StepDrop       StepKind = "drop-log"       // remove an empty last log file
	StepCut        StepKind = "cut-log"        // cut the end of the log
	StepFill       StepKind = "fill-log"       // put placeholders where records cannot be read
	StepPlace      StepKind = "mend-records"   // let records say again the queue and offset that their units say
	StepQueues     StepKind = "rebuild-queues" // build queues from the log
	StepIndex      StepKind = "rebuild-index"  // build the index from the log
	StepRestore    StepKind = "restore-config" // take a configuration file from its backup
	StepBackup     StepKind = "copy-config"    // make a backup a copy of its file
	StepTimer      StepKind = "reset-timer"    // let the next start build the timer from its log and topic
	StepQuarantine StepKind = "quarantine"     // move away a configuration file that cannot be read
	StepTopics     StepKind = "rebuild-topics" // make topics.json from queues and log
	StepClamp      StepKind = "clamp-offset"   // bring an offset into the range of its queue
	StepCheckpoint StepKind = "checkpoint"     // write a checkpoint that claims nothing
)

var stepOrder = []StepKind{
	StepRename, StepMoveAway, StepTrim, StepExtend, StepDrop, StepCut, StepFill, StepPlace, StepQueues, StepIndex, StepTimer,
	StepQuarantine, StepRestore, StepBackup, StepTopics, StepClamp, StepCheckpoint,
}

// Step is one step of a plan. It holds all that is needed to do it, so that it can be done after a restart.
type Step struct {
	Kind StepKind `json:"kind"`
	File string   `json:"file"` // inside the directory
	What string   `json:"what"` // one sentence
	// Destructive says that something is lost that nothing can bring back but the salvage directory.
	Destructive bool  `json:"destructive"`
	Messages    int64 `json:"messages"` // lost; -1 when that is not known
	Bytes       int64 `json:"bytes"`    // that are written, about
	Done        bool  `json:"done"`

	Phase     int   `json:"phase,omitempty"`
	Missing   bool  `json:"missing,omitempty"`   // the files of a range are not there: nothing of them is to be kept
	StoreTime int64 `json:"storeTime,omitempty"` // of placeholders, ms

	From   int64        `json:"from,omitempty"` // positions in the log
	To     int64        `json:"to,omitempty"`
	Size   int64        `json:"size,omitempty"`
	Target string       `json:"target,omitempty"`
	Lost   []stepLost   `json:"lost,omitempty"`
	Queues []stepQueue  `json:"queues,omitempty"`
	Clamp  []stepOffset `json:"clamp,omitempty"`

	Timer *timer.Checkpoint `json:"timer,omitempty"` // to be written
}

// stepLost is a message whose queue offset a placeholder keeps.
type stepLost struct {
	Topic  string `json:"topic"`
	Queue  int32  `json:"queue"`
	Batch  bool   `json:"batch,omitempty"`
	Offset int64  `json:"offset"`
	Count  int32  `json:"count"`
	Phys   int64  `json:"phys"`
	Size   int32  `json:"size"`
}

// stepQueue is a queue to be built.
type stepQueue struct {
	Topic     string `json:"topic"`
	Queue     int32  `json:"queue"`
	Batch     bool   `json:"batch,omitempty"`
	FileBytes int64  `json:"fileBytes"`
	End       int64  `json:"end"`                 // its end; where it has no records in the log, new messages go on there
	GenPhys   int64  `json:"genPhys,omitempty"`   // records before it, with offsets from GenOffset on,
	GenOffset int64  `json:"genOffset,omitempty"` // are of an earlier topic of the name
}

// stepOffset is an offset to be set.
type stepOffset struct {
	Key   string `json:"key"`
	Queue string `json:"queue"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

// RepairPlan is what a repair would do.
type RepairPlan struct {
	Root    string  `json:"root"`
	Steps   []*Step `json:"steps"`
	Left    int     `json:"left"`    // findings that no step mends
	Salvage string  `json:"salvage"` // directory of what is cut, inside the store directory
	// DelayMs is the delay of each level that the store uses, for units of delayed messages.
	DelayMs map[int]int64 `json:"delayMs,omitempty"`
	// Deleted are the topics whose records before a position, or at all (-1), get no units.
	Deleted map[string]int64 `json:"deleted,omitempty"`
	// Slots and Entries are the layout of new index files.
	Slots   int32 `json:"slots"`
	Entries int32 `json:"entries"`
}

// Destructive reports whether a step loses something that cannot be derived from the rest.
func (p *RepairPlan) Destructive() bool {
	return slices.ContainsFunc(p.Steps, func(s *Step) bool { return s.Destructive && !s.Done })
}

// Bytes is about how much space the steps need.
func (p *RepairPlan) Bytes() int64 {
	n := int64(0)
	for _, s := range p.Steps {
		if !s.Done {
			n += s.Bytes
		}
	}
	return n
}

// PlanOptions are what a plan cannot know.
type PlanOptions struct {
	// IndexSlots and IndexEntries are maxHashSlotNum and maxIndexNum; 0 means as the files there are, else Apache's.
	IndexSlots, IndexEntries int32
	// QueueFileBytes is mappedFileSizeConsumeQueue for a store without any queue file; 0 means Apache's.
	QueueFileBytes int64
}

// UnsupportedError says that a directory is of a kind that is not repaired.
type UnsupportedError struct {
	Dir  string
	Kind Kind
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("cannot repair store %q: it has %s (%s)", e.Dir, e.Kind.What, e.Kind.Path)
}

// PlanRepair makes the plan of the findings of a report. It changes nothing. Errors: *UnsupportedError.
func PlanRepair(r *Report, o PlanOptions) (*RepairPlan, error) {
	v := r.v
	if err := v.d.unsupported(); err != nil {
		return nil, err
	}
	b := newPlanner(v, o)
	for _, f := range r.Findings {
		if !f.Note && !b.finding(f) {
			b.plan.Left++
		}
	}
	b.rest()
	return b.plan, nil
}

// planner makes a plan.
type planner struct {
	v       *verifier
	o       PlanOptions
	plan    *RepairPlan
	queues  map[QueueKey]bool // to be built
	all     bool              // all queues
	cut     bool              // something of queues cannot be derived
	cutMsgs int64
	beyond  bool // what is cut lies behind the last file of the log
	index   bool
	logDone bool // the log changes
}

func newPlanner(v *verifier, o PlanOptions) *planner {
	b := &planner{v: v, o: o, queues: map[QueueKey]bool{}}
	run := v.began.UTC().Format("20060102T150405.000Z")
	b.plan = &RepairPlan{Root: v.d.root, Salvage: "mqx/salvage/repair-" + run, DelayMs: v.delays.table(), Deleted: map[string]int64{}}
	for topic, upTo := range v.deleted {
		b.plan.Deleted[topic] = upTo
	}
	for topic := range v.queues.mu.byTopic {
		if v.topicGone(topic) && !v.hasFiles(topic) {
			b.plan.Deleted[topic] = -1
		}
	}
	b.plan.Slots, b.plan.Entries = v.index.layout(o)
	return b
}

func (v *verifier) hasFiles(topic string) bool {
	return slices.ContainsFunc(v.queues.mu.byTopic[topic], func(q *vqueue) bool { return q.q != nil && len(q.q.files) > 0 })
}

func (b *planner) add(s *Step) { b.plan.Steps = append(b.plan.Steps, s) }

// finding adds the steps that mend a finding; false when none does.
func (b *planner) finding(f *Finding) bool {
	switch f.Kind {
	case FindLogRot, FindLogHole, FindLogTorn, FindLogMisplaced, FindLogSize:
		return b.logFinding(f)
	case FindRecordPlace:
		b.placeStep(f)
	case FindLogEmpty:
		b.add(&Step{Kind: StepDrop, File: f.File, What: "remove the empty log file " + f.File})
	case FindForeign:
		if byHand(f.File) {
			return false // Repair has refused before
		}
		b.add(&Step{Kind: StepMoveAway, File: f.File, What: "move " + f.File + " to " + b.plan.Salvage})
	case FindQueueMissing, FindQueueBehind, FindQueueAhead, FindQueueUnits, FindQueueFiles:
		if f.queue == nil {
			b.all = true
		} else {
			b.queues[*f.queue] = true
		}
		if f.Kind == FindQueueAhead {
			b.cut = true
			b.beyond = b.beyond || f.Phys >= b.v.d.log.Limit()
			b.cutMsgs += f.Messages
		}
	case FindIndexMissing, FindIndexDamaged, FindIndexEntries, FindIndexBehind, FindIndexAhead:
		b.index = true
	case FindCheckpoint:
		// rest adds it
	case FindConfig, FindBackup:
		b.config(f)
	case FindOffsetBeyond:
		b.clamp(f)
	case FindState:
		b.add(&Step{Kind: StepMoveAway, File: f.File, What: "move " + f.File + " to " + b.plan.Salvage})
	case FindTimerWheel, FindTimerLog, FindTimerCheckpoint:
		b.timerStep()
	case FindOffsetTwice, FindKind, FindRecordsUnseen, FindFillers, FindInUse, FindDirty:
		return false
	}
	return true
}

func (b *planner) logFinding(f *Finding) bool {
	v, x := b.v, f.log
	if x == nil { // a file that is only too long or too short
		b.resize(f)
		return true
	}
	var fill *Step
	if x.kind == FindLogRot || x.kind == FindLogHole {
		if fill = b.fillStep(f); fill.canFill() != nil {
			return false // nor can anything that follows from it be made right
		}
	}
	b.logDone = true
	if f.size > 0 {
		b.resize(f)
	}
	for _, l := range x.lost {
		b.queues[l.key] = true
	}
	switch x.kind {
	case FindLogMisplaced:
		p := v.partAt(x.file)
		s := &Step{Kind: StepRename, File: f.File, What: fmt.Sprintf("rename %s to %s, which it holds", f.File, FileName(p.carries)), Target: path.Join(path.Dir(f.File), FileName(p.carries))}
		if v.heldElsewhere(p) {
			s = &Step{Kind: StepMoveAway, File: f.File, What: fmt.Sprintf("move %s to %s: the log from %d on is in its own file", f.File, b.plan.Salvage, p.carries)}
		}
		b.add(s)
	case FindLogTorn:
		b.add(&Step{
			Kind: StepCut, File: f.File, From: x.from, To: x.to, Bytes: x.to - x.from, Destructive: true, Messages: f.Messages,
			What: fmt.Sprintf("keep %s at %d in %s and cut the log there", words.Count(x.to-x.from, "byte"), x.from, b.plan.Salvage),
		})
	case FindLogSize:
	default: // rot, or a hole
		b.add(fill)
	}
	return true
}

// lookElsewhere is what to do before files of the log are given up.
const lookElsewhere = "storePathCommitLog may name another directory that has it, which must be looked for first"

// behindFile reports whether a range begins where its file has ended: nothing of it is there.
func (v *verifier) behindFile(x *logBreak) bool {
	p := v.partAt(x.file)
	return p != nil && x.from >= p.End()
}

// fillStep is the step that puts placeholders into a range.
func (b *planner) fillStep(f *Finding) *Step {
	x := f.log
	s := &Step{
		Kind: StepFill, File: f.File, From: x.from, To: x.to, Size: b.v.fileSize, Destructive: true, Messages: f.Messages,
		Bytes: 2 * (x.to - x.from), StoreTime: x.store, Missing: x.kind == FindLogHole || b.v.behindFile(x), Lost: b.lostOf(x),
	}
	keep := fmt.Sprintf("keep %s at %d in %s and put", words.Count(x.to-x.from, "byte"), x.from, b.plan.Salvage)
	if s.Missing {
		keep = fmt.Sprintf("make the log from %d to %d, of which nothing is left to be kept, and put", x.from, x.to)
	}
	s.What = fmt.Sprintf("%s %s there that keep the queue offsets", keep, words.Count(len(s.Lost), "placeholder"))
	if x.kind == FindLogHole {
		s.What += "; " + lookElsewhere
	}
	return s
}

func (b *planner) resize(f *Finding) {
	s := &Step{Kind: StepTrim, File: f.File, Size: b.v.fileSize, Bytes: max(f.Offset-b.v.fileSize, 0)}
	if f.size > 0 {
		s.Bytes = max(f.size-f.Offset, 0)
		s.Kind, s.Size, s.Destructive, s.Messages = StepExtend, f.size, !f.Derived && (f.log == nil || f.log.kind == FindLogSize), f.Messages
	}
	s.What = fmt.Sprintf("bring %s to %s", f.File, words.Count(s.Size, "byte"))
	b.add(s)
}

// lostOf is what placeholders stand for: what units say, and records whose head is whole and whose offset nothing else
// has.
func (b *planner) lostOf(x *logBreak) []stepLost {
	seen := map[lostKey]bool{}
	phys := map[int64]bool{}
	var out []stepLost
	add := func(l lostRecord) {
		k := lostKey{l.key, l.offset}
		if seen[k] || phys[l.phys] {
			return
		}
		seen[k], phys[l.phys] = true, true
		out = append(out, stepLost{l.key.Topic, l.key.ID, l.key.Batch, l.offset, l.count, l.phys, l.size})
	}
	byKind := slices.Clone(x.lost)
	sorted.Stably(byKind, func(p, q lostRecord) int { // a record that light queues list too keeps its own queue
		return cmp.Compare(lightLast(p), lightLast(q))
	})
	for _, l := range byKind {
		add(l)
	}
	for _, l := range x.heads {
		if !b.v.holds(l) {
			add(l)
		}
	}
	sorted.By(out, func(p, q stepLost) int { return cmp.Compare(p.Phys, q.Phys) })
	return out
}

type lostKey struct {
	key    QueueKey
	offset int64
}

func lightLast(l lostRecord) int {
	if len(l.key.Topic) > 5 && l.key.Topic[:5] == "%LMQ%" {
		return 1
	}
	return 0
}

// holds reports whether a queue has a whole record at the offset that a broken one carries.
func (v *verifier) holds(l lostRecord) bool {
	for _, q := range v.queues.mu.byTopic[l.key.Topic] {
		if q.key.ID == l.key.ID && !q.key.Batch && l.offset >= 0 && q.mu.good.has(l.offset) {
			return true
		}
	}
	return l.offset < 0
}

func (b *planner) config(f *Finding) {
	name := path.Base(f.File)
	if f.Kind == FindBackup {
		b.add(&Step{Kind: StepBackup, File: f.File, Bytes: b.v.d.sizeOf(strings.TrimSuffix(f.File, ".bak")), What: "make " + f.File + " a copy of its file"})
		return
	}
	j, err := b.v.d.JSON(name)
	if err == nil && j.Backup != nil && configErr(name, j.Backup) == nil {
		b.add(&Step{Kind: StepRestore, File: f.File, Bytes: b.v.d.sizeOf(f.File + ".bak"), What: "restore " + f.File + " from its backup"})
		return
	}
	topics := name == "topics.json"
	if err == nil && (j.Main != nil || j.Backup != nil) {
		b.add(&Step{
			Kind: StepQuarantine, File: f.File, What: "move " + f.File + " to mqx/quarantine",
			Destructive: !topics && name != "timermetrics" && name != "transactionMetrics",
		})
	}
	if topics {
		b.add(&Step{Kind: StepTopics, File: f.File, What: "make topics.json from the queues and the log"})
	}
}

// timerSlackMs is how far a timer may be behind its time and still deliver each message once after its checkpoint was lost.
const timerSlackMs = 10_000

// timerStep adds the one step for all that is wrong with the timer.
func (b *planner) timerStep() {
	c := b.v.timer
	if c == nil || slices.ContainsFunc(b.plan.Steps, func(s *Step) bool { return s.Kind == StepTimer }) {
		return
	}
	x := c.view.Checkpoint
	s := &Step{Kind: StepTimer, File: nameTimerLog, From: -1, Timer: &x}
	x.LogFlushed = 0
	if len(c.view.Log) > 0 {
		x.LogFlushed = c.view.Log[0].Start
	}
	offset := max(x.QueueOffset, 0)
	if !c.view.HasCheckpoint || x.ReadTime < 0 {
		// What was due well before the newest record has been delivered: a delivery is a record.
		x.ReadTime = max(b.v.maxStore-timerSlackMs, 0) / 1000 * 1000
		offset = c.resume()
		x.MasterQueueOffset = offset
	}
	if limit, known := b.v.queueMax(message.TopicTimer, 0); known {
		offset = min(offset, limit)
	}
	s.What = "move the timer wheel to " + b.plan.Salvage + ": the next start builds it from the timer log"
	if c.cut {
		s.From, s.Size, s.Bytes = c.end, c.view.FileBytes, c.view.FileBytes
		offset = min(offset, c.resume())
		s.What += fmt.Sprintf(", which is cut at %d; what was behind is taken from the timer topic, from offset %d on", c.end, offset)
	}
	x.QueueOffset, x.MasterQueueOffset = offset, max(min(x.MasterQueueOffset, offset), 0)
	b.add(s)
}

func (b *planner) clamp(f *Finding) {
	for _, s := range b.plan.Steps {
		if s.Kind == StepClamp && s.File == f.File {
			return // the first one has taken all
		}
	}
	name := path.Base(f.File)
	j, err := b.v.d.JSON(name)
	if err != nil || j.Main == nil || j.Main.Err != nil {
		return
	}
	s := &Step{Kind: StepClamp, File: f.File, Destructive: true, Bytes: 2 * b.v.d.sizeOf(f.File)}
	for _, p := range b.v.wrongOffsets(name, j.Main) {
		s.Clamp = append(s.Clamp, stepOffset{p.key, p.queue, p.value, p.clamped()})
	}
	s.What = fmt.Sprintf("set %s in %s to the range of their queues", words.Count(len(s.Clamp), "offset"), f.File)
	b.add(s)
}

// rest adds the steps that several findings share, and sorts.
func (b *planner) rest() {
	v := b.v
	if b.all || len(b.queues) > 0 {
		b.queueStep()
	}
	for _, x := range v.breaks {
		b.index = b.index || x.entries
	}
	b.indexStep()
	if v.ckptWrong || (b.logDone && v.hasCkpt) {
		b.add(&Step{Kind: StepCheckpoint, File: nameCheckpoint, What: "write a checkpoint that claims nothing", Bytes: 4096})
	}
	b.planIsOver()
}

// indexStep adds the building of the index, if it is needed.
func (b *planner) indexStep() {
	v := b.v
	if b.index {
		entries := v.index.mu.keyed * 3
		files := entries/int64(max(b.plan.Entries-1, 1)) + 1
		b.add(&Step{
			Kind: StepIndex, File: nameIndex, Bytes: entries*indexEntry + files*indexSlot*int64(b.plan.Slots),
			What: fmt.Sprintf("build the index from the log, in files of %d slots and %s%s", b.plan.Slots, words.Count(b.plan.Entries, "entry"), b.layoutHint()),
		})
	}
}

// layoutHint says how to have index files of another size, where no old file tells it and nobody has said it.
func (b *planner) layoutHint() string {
	if len(b.v.index.files) > 0 || b.o.IndexSlots > 0 || b.o.IndexEntries > 0 {
		return ""
	}
	return ", the broker's default, as no old file tells: --index-slots and --index-entries for what maxHashSlotNum and maxIndexNum say"
}

// planIsOver brings the steps into their order, each once.
func (b *planner) planIsOver() {
	if slices.ContainsFunc(b.plan.Steps, func(s *Step) bool { return s.Kind == StepRename }) {
		// What looks lost may be in a file of another name: first everything goes to its place, then it is looked at again.
		b.plan.Steps = slices.DeleteFunc(b.plan.Steps, func(s *Step) bool { return s.Kind != StepRename && s.Kind != StepMoveAway })
	}
	sorted.Stably(b.plan.Steps, func(x, y *Step) int {
		return cmp.Or(
			cmp.Compare(slices.Index(stepOrder, x.Kind), slices.Index(stepOrder, y.Kind)),
			cmp.Compare(x.From, y.From), cmp.Compare(x.File, y.File),
		)
	})
	b.plan.Steps = slices.CompactFunc(b.plan.Steps, func(x, y *Step) bool { return x.Kind == y.Kind && x.File == y.File && x.From == y.From })
}

func (b *planner) queueStep() {
	v := b.v
	s := &Step{Kind: StepQueues, File: nameQueues, Destructive: b.cut, Messages: b.cutMsgs}
	size := v.commonQueueSize(b.o)
	for _, q := range v.queues.mu.all {
		if (!b.all && !b.queues[q.key]) || (v.topicGone(q.key.Topic) && !v.hasFiles(q.key.Topic)) {
			continue
		}
		x := stepQueue{Topic: q.key.Topic, Queue: q.key.ID, Batch: q.key.Batch, FileBytes: size, End: max(q.end, q.mu.max), GenPhys: q.genPhys, GenOffset: q.genOffset}
		if q.key.Batch {
			x.FileBytes = int64(store.DefaultConfig().BatchConsumeQueueFileBytes)
		}
		if q.q != nil {
			if n := q.q.FileSize(); n > 0 && n%q.key.UnitBytes() == 0 {
				x.FileBytes = n
			}
		}
		s.Bytes += q.mu.recs*q.key.UnitBytes() + 4096
		s.Queues = append(s.Queues, x)
	}
	if len(s.Queues) == 0 {
		return
	}
	s.What = fmt.Sprintf("build %s from the log", words.Count(len(s.Queues), "queue"))
	if len(s.Queues) == 1 {
		s.File = QueueKey{s.Queues[0].Topic, s.Queues[0].Queue, s.Queues[0].Batch}.Dir()
		s.What = "build queue " + filepath.Base(filepath.Dir(s.File)) + "/" + filepath.Base(s.File) + " from the log"
	}
	if b.cut {
		s.What += fmt.Sprintf("; %s of messages that the log does not have any more are cut, and the queues as they are kept in %s", words.Count(b.cutMsgs, "unit"), b.plan.Salvage)
		if b.beyond {
			s.What += "; the log may go on elsewhere: " + lookElsewhere
		}
	}
	b.add(s)
}

// commonQueueSize is the size of the files of queues that have none.
func (v *verifier) commonQueueSize(o PlanOptions) int64 {
	if o.QueueFileBytes > 0 {
		return (o.QueueFileBytes + consumequeue.UnitSize - 1) / consumequeue.UnitSize * consumequeue.UnitSize
	}
	count := map[int64]int{}
	best := int64(store.DefaultConfig().ConsumeQueueFileBytes)
	for _, q := range v.queues.mu.all {
		if q.q == nil || q.key.Batch {
			continue
		}
		if n := q.q.FileSize(); n > 0 && n%consumequeue.UnitSize == 0 {
			if count[n]++; count[n] > count[best] {
				best = n
			}
		}
	}
	return best
}

// layout is how new index files are divided.
func (x *indexCheck) layout(o PlanOptions) (slots, entries int32) {
	def := store.DefaultConfig()
	slots, entries = int32(def.MaxHashSlotNum), int32(def.MaxIndexNum)
	for _, f := range x.files {
		if f.Slots > 0 && f.Entries > 0 && (f.Err == nil || f.Slots/16 <= f.Entries) { // a damaged length says anything
			slots, entries = f.Slots, f.Entries
		}
		if f.Err == nil {
			break
		}
	}
	if o.IndexSlots > 0 {
		slots = o.IndexSlots
	}
	if o.IndexEntries > 0 {
		entries = o.IndexEntries
	}
	return slots, entries
}

// table is the delays that differ from those that were given.
func (t *delayTable) table() map[int]int64 {
	out := map[int]int64{}
	for i := range t.levels {
		out[i+1] = t.levels[i].Milliseconds()
	}
	if t.fits.Load() {
		return out
	}
	for level, byDelay := range t.mu.other {
		for ms, list := range byDelay {
			if len(list) >= len(byDelay[out[level]]) {
				out[level] = ms
			}
		}
	}
	return out
}
