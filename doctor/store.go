package doctor

import (
	"fmt"
	"time"

	"mqx/internal/words"
	"mqx/store/inspect"
)

// Store is the evidence of a store directory.
type Store struct {
	Dir    string // as it was named
	Now    time.Time
	Info   *inspect.Info
	Report *inspect.Report // nil: it was not verified
	Lags   []inspect.Lag   // nil with LagErr
	LagErr error
	// Retention is fileReservedTime of the broker, 0: not known.
	Retention time.Duration
}

var storeRules = []Rule{
	{
		ID: "store-damaged", Scope: ScopeStore, Severity: Critical, judge: judgeDamage,
		Looks:   "Something in the directory is broken whose mend loses messages, or what is known of them.",
		Meaning: "the broker skips or cuts it when it starts; consumers miss what it held",
		Mend:    "mqx store repair <NAME> --dry-run",
	},
	{
		ID: "store-derived", Scope: ScopeStore, Severity: Warning, judge: judgeDerived,
		Looks:   "Queues, index or tables are not what the log says; they can be built from it again.",
		Meaning: "messages are there and not found by consumers or keys until they are built again",
		Mend:    "mqx store repair <NAME> --yes, with the broker stopped",
	},
	{
		ID: "store-not-closed", Scope: ScopeStore, Severity: Note, judge: judgeNotClosed,
		Looks:   "The last broker did not close the directory.",
		Meaning: "the next one recovers it as after a crash, which is what it is made for",
		Mend:    "nothing: start the broker; mqx store verify <NAME> shows what it will find",
	},
	{
		ID: "store-kind", Scope: ScopeStore, Severity: Warning, judge: judgeKinds,
		Looks:   "The directory has a part that this program does not look into (RocksDB, DLedger, several log directories …).",
		Meaning: "what is in it is not judged, and an mqx broker does not start on it",
		Mend:    "mqx store preflight <NAME> --target mqx",
	},
	{
		ID: "store-offset-beyond", Scope: ScopeStore, Severity: Critical, judge: judgeStoreBeyond,
		Looks:   "A committed offset lies behind the end of its queue, or is negative.",
		Meaning: "the next messages up to there are skipped by the group",
		Mend:    "mqx store repair <NAME> --dry-run, or mqx admin offset reset once the broker runs",
	},
	{
		ID: "store-deleted-unread", Scope: ScopeStore, Severity: Warning, judge: judgeStoreLost,
		Looks:   "A group stands before the first message that its queue still has.",
		Meaning: "what was between is lost to the group",
		Mend:    "mqx store offsets <NAME> shows them",
	},
	{
		ID: "store-expires-unread", Scope: ScopeStore, Severity: Warning, judge: judgeStoreExpires,
		Looks:   "The oldest file of the log is past, or within a quarter of, the time that files are kept, and a group has unread messages at the start of its queue.",
		Meaning: "a broker that starts on the directory deletes that file, read or not",
		Mend:    "fileReservedTime in broker.conf before the broker is started; mqx store export <NAME> keeps the messages",
	},
	{
		ID: "store-disk", Scope: ScopeStore, Severity: Critical, judge: judgeStoreDisk,
		Looks:   "The volume of the directory is at, or within five points of, 75, 85 or 90 %.",
		Meaning: "at 75 % expired files are deleted at any hour, at 85 % young ones too, at 90 % messages are refused",
		Mend:    "room on the volume of <NAME>, or a lower fileReservedTime",
	},
}

// damage calls f for each finding that is no note.
func (j *judgement) damage(f func(x *inspect.Finding)) {
	r := j.Store.Report
	if r == nil {
		j.unknown("the directory was not verified")
		return
	}
	for _, x := range r.Findings {
		if !x.Note && x.Kind != inspect.FindOffsetBeyond && x.Kind != inspect.FindKind {
			f(x)
		}
	}
	if more := r.Total - len(r.Findings); more > 0 {
		j.unknown("%s more were not kept", words.Count(more, "finding"))
	}
}

func told(x *inspect.Finding) string {
	text := string(x.Kind)
	if x.File != "" {
		text += " " + x.File
	}
	text += ": " + x.What
	if x.Messages > 0 {
		text += fmt.Sprintf(" (%s)", words.Count(x.Messages, "message"))
	}
	return text
}

func judgeDamage(j *judgement) {
	j.damage(func(x *inspect.Finding) {
		if !x.Derived {
			j.find(j.Store.Dir, "%s", told(x))
		}
	})
	if r := j.Store.Report; r != nil {
		j.ok("%s read, none is broken", words.Count(r.Records, "record"))
	}
}

func judgeDerived(j *judgement) {
	j.damage(func(x *inspect.Finding) {
		if x.Derived {
			j.find(j.Store.Dir, "%s", told(x))
		}
	})
	if r := j.Store.Report; r != nil {
		j.ok("%s of queues and %d index entries are what the log says", words.Count(r.Units, "unit"), r.Entries)
	}
}

func judgeNotClosed(j *judgement) {
	switch u := j.Store.Info.InUse; {
	case u.Locked:
		j.ok("%s has it open", u.Who())
	case u.Abort:
		j.find(j.Store.Dir, "the file abort is there, and no broker has the directory open")
	default:
		j.ok("it was closed")
	}
}

func judgeKinds(j *judgement) {
	for _, k := range j.Store.Info.Kinds {
		if foreignKind(k.Name) {
			j.find(j.Store.Dir, "%s: %s", k.Name, k.What)
		}
	}
	j.ok("it has no part of a kind that is not looked into")
}

// foreignKind: nothing in this program reads it.
func foreignKind(k inspect.KindName) bool {
	switch k {
	case inspect.KindMQX, inspect.KindTimer, inspect.KindExtUnits, inspect.KindBatchQueues, inspect.KindController:
		return false
	}
	return true
}

// lags calls f for each committed offset.
func (j *judgement) lags(f func(l *inspect.Lag)) {
	if j.Store.LagErr != nil {
		j.unknown("%v", j.Store.LagErr)
		return
	}
	for i := range j.Store.Lags {
		f(&j.Store.Lags[i])
	}
}

func judgeStoreBeyond(j *judgement) {
	j.lags(func(l *inspect.Lag) {
		if l.State == inspect.LagBeyond || l.State == inspect.LagNegative {
			j.find(j.Store.Dir, "group %s in %s queue %d: committed %d, the queue has %d to %d", l.Group, l.Topic, l.Queue, l.Offset, l.Min, l.Max)
		}
	})
	j.ok("%d committed offsets lie within their queues", len(j.Store.Lags))
}

func judgeStoreLost(j *judgement) {
	j.lags(func(l *inspect.Lag) {
		if l.State == inspect.LagBelow {
			j.find(j.Store.Dir, "group %s in %s queue %d: committed %d, the queue begins at %d: %d are gone", l.Group, l.Topic, l.Queue, l.Offset, l.Min, l.Min-l.Offset)
		}
	})
	j.ok("no group stands before the start of its queue")
}

func judgeStoreExpires(j *judgement) {
	s := j.Store
	if s.Retention == 0 || s.Info.First == nil {
		j.unknown("how long files are kept is not known, or there is none (--keep)")
		return
	}
	file, due, ok := s.Info.NextExpiry(s.Retention)
	if !ok || due.Sub(s.Now) > s.Retention/4 {
		j.ok("no file of the log expires within %s", s.Retention/4)
		return
	}
	j.lags(func(l *inspect.Lag) {
		if l.State == inspect.LagOK && l.Lag > 0 && l.Offset <= l.Min {
			j.find(s.Dir, "group %s has read nothing of %d messages of %s queue %d, and %s expires at %s", l.Group, l.Lag, l.Topic, l.Queue, file.Path, due.UTC().Format(time.RFC3339))
		}
	})
	j.ok("no group has unread messages at the start of its queue")
}

func judgeStoreDisk(j *judgement) {
	i := j.Store.Info
	if !i.VolumeKnown || i.Volume.Total <= 0 {
		j.unknown("the size of the volume is not known")
		return
	}
	used := (i.Volume.Total - i.Volume.Free) * 100 / i.Volume.Total
	lines := []watermark{{90, "messages are refused", Critical}, {85, "young files are deleted", Critical}, {75, "expired files are deleted at any hour", Warning}}
	if text, bad, hit := lineOf(used, lines); hit {
		j.findAs(bad, j.Store.Dir, "%d %% of %s used, %s free: %s", used, size(i.Volume.Total), size(i.Volume.Free), text)
	}
	j.ok("%d %% used, %s free", used, size(i.Volume.Free))
}
