package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"mqx/internal/sorted"
	"mqx/internal/words"
)

// Target is a broker that is to open a store directory.
type Target string

// The targets: the last versions of their lines that can be had, 4.9.7, 5.3.3 and 5.5.0, and this program.
const (
	TargetApache49 Target = "apache-4.9"
	TargetApache53 Target = "apache-5.3"
	TargetApache55 Target = "apache-5.5"
	TargetMQX      Target = "mqx"
)

// Targets are all targets.
func Targets() []Target {
	return []Target{TargetApache49, TargetApache53, TargetApache55, TargetMQX}
}

// Risk says what an issue comes to.
type Risk string

// Risks, the worst first.
const (
	RiskStart  Risk = "does-not-start"
	RiskLoss   Risk = "loss"    // messages, or what is known of them, are lost for the target or for good
	RiskMisuse Risk = "misread" // served otherwise than they were stored
	RiskNote   Risk = "note"    // worth knowing, and safe
)

var riskOrder = []Risk{RiskStart, RiskLoss, RiskMisuse, RiskNote}

// Issue is one thing that a target makes of a directory.
type Issue struct {
	Risk     Risk
	Kind     string // stable name: docs/store.md
	File     string // inside the directory, "" for none
	Messages int64  // affected; -1 when that is not known
	What     string
	Try      string // "" for nothing
}

// Unsafe reports that an issue is more than a note.
func (i *Issue) Unsafe() bool { return i.Risk != RiskNote }

// PreflightOptions say what is to open the directory.
type PreflightOptions struct {
	Target Target
	// Conf is the broker.conf of the target, by key. Nil means: one with the sizes that the files have.
	Conf       map[string]string
	OnProgress func(done, total int64)
}

// Preflight says whether a target can open a store directory, and what would be lost or misread. It reads all of it and
// changes nothing. The rules are those that the versions were seen to follow on stores of every kind: docs/store.md.
func Preflight(ctx context.Context, d *Dir, o PreflightOptions) ([]*Issue, error) {
	p := &preflight{ctx: ctx, d: d, o: o}
	for _, step := range []func() error{p.kinds, p.settings, p.verify, p.records, p.recovery, p.config, p.pending} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("cannot check %q for %s: %w", d.root, o.Target, err)
		}
	}
	sorted.Stably(p.list, func(a, b *Issue) int {
		return cmp.Compare(slices.Index(riskOrder, a.Risk), slices.Index(riskOrder, b.Risk))
	})
	return p.list, nil
}

type preflight struct {
	ctx    context.Context //nolint:containedctx // of one call of Preflight
	d      *Dir
	o      PreflightOptions
	list   []*Issue
	report *Report
	seen   recordTraits
}

func (p *preflight) apache() bool { return p.o.Target != TargetMQX }
func (p *preflight) old() bool    { return p.o.Target == TargetApache49 }

func (p *preflight) add(risk Risk, kind, file string, messages int64, what, try string) {
	p.list = append(p.list, &Issue{Risk: risk, Kind: kind, File: file, Messages: messages, What: what, Try: try})
}

func (p *preflight) note(kind, file, what, try string) { p.add(RiskNote, kind, file, -1, what, try) }

// conf is a setting of the target as a number: what was given, else what the files tell, else def.
func (p *preflight) conf(key string, found, def int64) int64 {
	if p.o.Conf == nil {
		return cmp.Or(found, def)
	}
	if n, err := strconv.ParseInt(p.o.Conf[key], 10, 64); err == nil {
		return n
	}
	return def
}

func (p *preflight) on(key string) bool { return p.o.Conf[key] == "true" }

// kinds judges parts that not every version reads.
func (p *preflight) kinds() error {
	for _, k := range p.d.kinds {
		risk, what, try := p.kind(k)
		if risk != "" {
			p.add(risk, string(k.Name), k.Path, -1, k.What+": "+what, try)
		}
	}
	for _, name := range []string{importJournal, repairJournal} {
		if _, ok, err := p.d.stat(name); err != nil {
			return err
		} else if ok {
			p.add(RiskLoss, "unfinished", name, -1, "an import or a repair of mqx was interrupted", "the same command once more")
		}
	}
	u := p.d.in
	if u.Locked {
		p.note("in-use", nameLock, u.Who()+" has it open, a broker or another mqx store command: no other broker starts on it meanwhile", "stop it, then the same command")
	} else if u.Abort {
		p.note("not-closed", nameAbort, "the last broker did not close it: the next one recovers it as after a crash", "")
	}
	return nil
}

// kind is what a target makes of one trait; an empty risk is nothing worth saying.
func (p *preflight) kind(k Kind) (risk Risk, what, try string) {
	switch k.Name {
	case KindRocksDBQueues:
		if !p.apache() || p.old() {
			return RiskStart, "this version does not read them", "Apache RocketMQ 5.5 with storeType=defaultRocksDB"
		}
		return p.needs("storeType", "defaultRocksDB", "without it the queues are built again from the log")
	case KindRocksDBConfig:
		if !p.apache() || p.old() {
			return RiskStart, "this version does not read them: topics, groups and offsets would be unknown", "rocksDBConfigToJson of Apache's mqadmin"
		}
		return p.needs("configManagerVersion", "v2", "without it, or storeType=defaultRocksDB, topics, groups and offsets are unknown")
	case KindRocksDBTimer, KindRocksDBPop:
		if p.o.Target != TargetApache55 {
			return RiskLoss, "this version does not read them: what waits there is not delivered", "Apache RocketMQ 5.5"
		}
		if k.Name == KindRocksDBPop {
			return p.needs("popConsumerKVServiceEnable", "true", "without it messages that were popped and not acknowledged come back only by chance")
		}
		return RiskNote, "only with the switches of the broker that wrote them", ""
	case KindRocksDBAuth:
		if p.apache() && !p.old() {
			return RiskNote, "users and permissions apply when authentication is on", ""
		}
		return RiskLoss, "this version does not read them: users and permissions would not apply", ""
	case KindCompaction:
		if p.apache() && !p.old() {
			return RiskNote, "read by this version", ""
		}
		return RiskStart, "what only they keep is not served by this version", "Apache RocketMQ 5.3 or later"
	case KindDLedger:
		return p.needs("enableDLegerCommitLog", "true", "without it the log is taken for empty and its queues are destroyed")
	case KindMultiPath:
		if !p.apache() {
			return RiskStart, "not served by mqx", ""
		}
		return RiskNote, "storePathCommitLog has to name all of them", ""
	case KindController:
		return RiskNote, "epochs count only with enableControllerMode", ""
	case KindBatchQueues:
		if p.old() {
			return RiskMisuse, "this version does not read them; it builds queues with one offset for a whole batch, so that consumer offsets mean other messages", "Apache RocketMQ 5"
		}
		return "", "", ""
	case KindExtUnits:
		if p.o.Conf != nil && !p.on("enableConsumeQueueExt") {
			return RiskMisuse, "without enableConsumeQueueExt their addresses are taken for tag codes, and consumers with a tag miss messages", "enableConsumeQueueExt=true"
		}
		return RiskNote, "enableConsumeQueueExt has to be true", ""
	case KindMQX:
		return RiskNote, "Apache's broker does not look at it", ""
	case KindTimer:
	}
	return "", "", ""
}

// needs: with this setting it is all right.
func (p *preflight) needs(key, value, without string) (Risk, string, string) {
	if !p.apache() {
		return RiskStart, "not served by mqx", ""
	}
	if p.o.Conf == nil {
		return RiskNote, key + " has to be " + value + ": " + without, ""
	}
	if p.o.Conf[key] == value {
		return RiskNote, "read with " + key + "=" + value, ""
	}
	return RiskLoss, without, key + "=" + value
}

// sizeKey is a part whose files have a size that the configuration has to name.
type sizeKey struct {
	key   string
	def   int64
	fatal bool // another size keeps the broker from starting
}

var sizeKeys = []sizeKey{
	{"mappedFileSizeCommitLog", defaultLogFile, true},
	{"mappedFileSizeConsumeQueue", defaultQueueFile, true},
	{"mapperFileSizeBatchConsumeQueue", defaultBatchQueueFile, true},
	{"mappedFileSizeConsumeQueueExt", 50_331_648, true},
	{"mappedFileSizeTimerLog", 100 << 20, true},
	{"maxHashSlotNum", 5_000_000, false},
	{"maxIndexNum", 20_000_000, false},
}

// settings compares the sizes of the files with the configuration. mqx takes the sizes that it finds.
func (p *preflight) settings() error {
	info, err := p.d.Info(p.ctx)
	if err != nil || !p.apache() {
		return err
	}
	for _, s := range sizeKeys {
		found, err := strconv.ParseInt(info.Settings[s.key], 10, 64)
		if err != nil || p.old() && (s.key == "mapperFileSizeBatchConsumeQueue" || s.key == "mappedFileSizeTimerLog") {
			continue
		}
		want := p.conf(s.key, found, s.def)
		try := fmt.Sprintf("%s=%d", s.key, found)
		switch {
		case want != found && s.fatal:
			p.add(RiskStart, "file-size", "", -1, fmt.Sprintf("the files have %s %d, the configuration says %d: the broker takes them for damaged", s.key, found, want), try)
		case want != found:
			p.add(RiskLoss, "file-size", nameIndex, -1, fmt.Sprintf("the index has %s %d, the configuration says %d: keys are not found", s.key, found, want), try)
		case p.o.Conf == nil && found != s.def:
			p.note("setting", "", fmt.Sprintf("%s has to be %d, which is not the default", s.key, found), try)
		}
	}
	return p.mixedSizes()
}

// mixedSizes finds files that have another size than their neighbours. Apache's broker checks every one.
func (p *preflight) mixedSizes() error {
	odd := func(files []File, what string) {
		size := commonSize(files)
		for i, f := range files {
			if f.whole() != size && (f.Size > 0 || i < len(files)-1) {
				p.add(RiskStart, "file-size", p.d.Rel(f.Path), -1, fmt.Sprintf("a file of the %s has %s, the others %d: the broker takes it for damaged and does not start", what, words.Count(f.whole(), "byte"), size), "mqx store repair")
			}
		}
	}
	odd(p.d.log.files, "log")
	keys, err := p.d.Queues()
	if err != nil {
		return err
	}
	var simple, batch, ext []File
	for _, k := range keys {
		q, err := p.d.Queue(k)
		if err != nil {
			continue // gone meanwhile
		}
		if k.Batch {
			batch = append(batch, q.files...)
		} else {
			simple = append(simple, q.files...)
		}
		ext = append(ext, q.ext...)
	}
	odd(simple, "queues")
	odd(ext, "extension units")
	if !p.old() {
		odd(batch, "batch queues")
	}
	return nil
}
