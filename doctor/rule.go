package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"mqx/admin"
	"mqx/internal/sorted"
)

// Scope is what a rule looks at.
type Scope string

// Scopes.
const (
	ScopeCluster Scope = "cluster"
	ScopeHost    Scope = "host"
	ScopeStore   Scope = "store"
)

// Severity says how bad a finding is.
type Severity string

// Severities, the worst first.
const (
	Critical Severity = "critical" // messages are lost, not taken or not delivered, or soon will be
	Warning  Severity = "warning"  // it will become worse, or something does not work as it was meant
	Note     Severity = "note"     // worth knowing; nothing has to be done
)

// Severities are all of them, the worst first.
func Severities() []Severity { return []Severity{Critical, Warning, Note} }

// AtLeast reports whether s is as bad as least, or worse.
func (s Severity) AtLeast(least Severity) bool {
	return slices.Index(Severities(), s) <= slices.Index(Severities(), least)
}

// Verdict is what a rule says.
type Verdict string

// Verdicts.
const (
	Found   Verdict = "finding"
	OK      Verdict = "ok"
	Unknown Verdict = "unknown" // there is no evidence, and Evidence says why
)

// Rule is one thing that can be wrong.
type Rule struct {
	ID       string // stable
	Scope    Scope
	Severity Severity // of its findings, the worst
	Looks    string   // what it looks for
	Meaning  string   // what a finding means
	Mend     string   // the command that mends it; <NAME> stands for what the finding is about
	judge    func(*judgement)
}

// Finding is what one rule says of one thing.
type Finding struct {
	Rule     string
	Severity Severity
	Verdict  Verdict
	Subject  string // what it is about: a topic, a group, a broker, a file
	Evidence string
	Meaning  string
	Mend     string
}

// Bad reports whether it is a finding that has to be dealt with: no note.
func (f *Finding) Bad() bool { return f.Verdict == Found && f.Severity.AtLeast(Warning) }

// Evidence is all that rules look at. A part that was not gathered is nil.
type Evidence struct {
	Cluster *Cluster
	Host    *Host
	Store   *Store
	Limits  Limits
}

// Choice says which rules are asked. Zero: all that there is evidence for.
type Choice struct {
	Only []string // ids
	Skip []string // ids
}

// Diagnose asks every rule of the scopes that there is evidence of, in the order of the
// table. A rule that found nothing is in the list once, with OK or Unknown.
func Diagnose(e Evidence, c Choice) []Finding {
	e.Limits.fill()
	var out []Finding
	for i := range rules {
		r := &rules[i]
		if !e.has(r.Scope) || len(c.Only) > 0 && !slices.Contains(c.Only, r.ID) || slices.Contains(c.Skip, r.ID) {
			continue
		}
		j := &judgement{Evidence: &e, rule: r}
		r.judge(j)
		out = append(out, j.verdicts()...)
	}
	return out
}

func (e *Evidence) has(s Scope) bool {
	switch s {
	case ScopeCluster:
		return e.Cluster != nil
	case ScopeHost:
		return e.Host != nil
	case ScopeStore:
		return e.Store != nil
	}
	return false
}

// Rules are all rules, in their order.
func Rules() []Rule { return slices.Clone(rules) }

// Sort orders findings: findings first, the worst in front, then what is unknown, then
// what is right.
func Sort(list []Finding) {
	order := []Verdict{Found, Unknown, OK}
	sorted.Stably(list, func(a, b Finding) int {
		if d := cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict)); d != 0 || a.Verdict != Found {
			return d
		}
		return cmp.Compare(slices.Index(Severities(), a.Severity), slices.Index(Severities(), b.Severity))
	})
}

// maxSubjects bounds the findings of one rule: a thousand topics of one cause are one
// cause.
const maxSubjects = 50

// judgement is one rule at work.
type judgement struct {
	*Evidence
	rule  *Rule
	found []Finding
	more  int
	blank []string // why parts are unknown
	fine  string

	earlier map[groupQueue]*admin.QueueLag // of the earlier survey
}

// find adds a finding with the severity of the rule.
func (j *judgement) find(subject, evidence string, args ...any) {
	j.findAs(j.rule.Severity, subject, evidence, args...)
}

// findAs adds a finding of a severity. The command of the rule has the subject in the
// place of <NAME>.
func (j *judgement) findAs(s Severity, subject, evidence string, args ...any) {
	j.findMend(s, subject, strings.ReplaceAll(j.rule.Mend, "<NAME>", subject), evidence, args...)
}

// findMend adds a finding with a command of its own.
func (j *judgement) findMend(s Severity, subject, mend, evidence string, args ...any) {
	if len(j.found) == maxSubjects {
		j.more++
		return
	}
	j.found = append(j.found, Finding{
		Rule: j.rule.ID, Severity: s, Verdict: Found, Subject: subject, Evidence: fmt.Sprintf(evidence, args...), Meaning: j.rule.Meaning, Mend: mend,
	})
}

// unknown says why a part cannot be judged.
func (j *judgement) unknown(why string, args ...any) {
	j.blank = append(j.blank, fmt.Sprintf(why, args...))
}

// ok says what was looked at, for the case that nothing is wrong.
func (j *judgement) ok(evidence string, args ...any) { j.fine = fmt.Sprintf(evidence, args...) }

func (j *judgement) verdicts() []Finding {
	out := j.found
	if j.more > 0 {
		out[len(out)-1].Evidence += fmt.Sprintf("; and %d more like it", j.more)
	}
	one := Finding{Rule: j.rule.ID, Severity: j.rule.Severity, Verdict: OK, Evidence: j.fine}
	if len(j.blank) > 0 {
		one.Verdict, one.Evidence = Unknown, someOf(slices.Compact(slices.Sorted(slices.Values(j.blank))))
	} else if len(out) > 0 {
		return out
	}
	return append(out, one)
}

// someOf is the first few of a list.
func someOf(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Limits are where rules begin to find. Zero values mean the defaults.
type Limits struct {
	NameServers      int           // fewer are a finding; 3
	Skew             time.Duration // between clocks; 2 s
	HeadWait         time.Duration // of the first request in a queue; 200 ms
	LockHeld         time.Duration // of one append; 1 s
	PutP99           time.Duration // of 99 in 100 puts; 200 ms
	FlushBehind      int64         // bytes; 64 MiB
	DispatchBehind   int64         // bytes; 16 MiB
	HAGap            int64         // bytes; 256 MiB
	OpenTransactions int64         // 100
	CPU              float64       // share of all processors; 0.85
	DeviceBusy       float64       // share of the time; 0.9
	Dirty            float64       // share of memory; 0.1
	Descriptors      int64         // 100,000
	TCP              int64         // sockets in one state that should pass; 5,000
	MemoryGrowth     int64         // bytes between two samples; 16 MiB
}

func (l *Limits) fill() {
	l.NameServers = cmp.Or(l.NameServers, 3)
	l.Skew = cmp.Or(l.Skew, 2*time.Second)
	l.HeadWait = cmp.Or(l.HeadWait, 200*time.Millisecond)
	l.LockHeld = cmp.Or(l.LockHeld, time.Second)
	l.PutP99 = cmp.Or(l.PutP99, 200*time.Millisecond)
	l.FlushBehind = cmp.Or(l.FlushBehind, 64<<20)
	l.DispatchBehind = cmp.Or(l.DispatchBehind, 16<<20)
	l.HAGap = cmp.Or(l.HAGap, 256<<20)
	l.OpenTransactions = cmp.Or(l.OpenTransactions, 100)
	l.CPU = cmp.Or(l.CPU, 0.85)
	l.DeviceBusy = cmp.Or(l.DeviceBusy, 0.9)
	l.Dirty = cmp.Or(l.Dirty, 0.1)
	l.Descriptors = cmp.Or(l.Descriptors, 100_000)
	l.TCP = cmp.Or(l.TCP, 5000)
	l.MemoryGrowth = cmp.Or(l.MemoryGrowth, 16<<20)
}
