package admin

import (
	"fmt"
	"maps"
	"slices"

	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// Kind names the form of Saved.
func (p *OffsetPlan) Kind() string { return kindOffset }

// Object is the group.
func (p *OffsetPlan) Object() string { return p.spec.Group }

// Title says where the offsets go.
func (p *OffsetPlan) Title() string {
	if p.undoes {
		return "put the offsets of group " + p.spec.Group + " back"
	}
	return fmt.Sprintf("set the offsets of group %s to %s", p.spec.Group, p.spec.To.String())
}

// Clusters are the clusters of the brokers.
func (p *OffsetPlan) Clusters() []string { return p.clusters }

// Destroys is never: offsets can be put back.
func (p *OffsetPlan) Destroys() bool { return false }

// Missing are the brokers that could not be planned for.
func (p *OffsetPlan) Missing() []TargetError { return p.missing }

// Steps are the queues.
func (p *OffsetPlan) Steps() []Step {
	out := make([]Step, 0, len(p.steps))
	for i := range p.steps {
		out = append(out, p.steps[i].step())
	}
	return out
}

// idle: the offset is there already.
func (s *offsetStep) idle() bool { return s.Before.OK && s.Before.Value == s.Move.Offset }

func (s *offsetStep) step() Step {
	out := Step{Broker: s.Broker, Addr: s.Addr, Part: fmt.Sprintf("%s queue %d", s.Topic, s.QueueID.QueueID), Action: ActionUpdate, After: s.Move, Warning: s.Warning}
	before := "nothing"
	if s.Before.OK {
		out.Before = OffsetState{s.Before.Value}
		before = fmt.Sprint(s.Before.Value)
	} else {
		out.Action = ActionCreate
	}
	if s.idle() {
		out.Action = ActionNone
	}
	out.Text = fmt.Sprintf("%s -> %d", before, s.Move.Offset)
	switch m := s.Move; {
	case m.Skipped == nil:
	case *m.Skipped > 0:
		out.Text += fmt.Sprintf(", %d skipped", *m.Skipped)
	case *m.Repeated > 0:
		out.Text += fmt.Sprintf(", %d repeated", *m.Repeated)
	}
	return out
}

// Notes say what the offsets are set with, and what happens to retries.
func (p *OffsetPlan) Notes() []Note {
	var notes []Note
	var skipped, repeated, unknown int64
	for i := range p.steps {
		switch m := p.steps[i].Move; {
		case m.Skipped == nil:
			unknown++
		default:
			skipped, repeated = skipped+*m.Skipped, repeated+*m.Repeated
		}
	}
	notes = append(notes, Note{"in all", fmt.Sprintf("%s skipped, %d repeated", words.Count(skipped, "message"), repeated)})
	if unknown > 0 {
		notes = append(notes, Note{"unknown", fmt.Sprintf("what it means in %s, where the group has committed nothing", words.Count(unknown, "queue"))})
	}
	if p.spec.KeepSkipped {
		notes = append(notes, Note{"kept", fmt.Sprintf("%s copied into %s first", words.Count(p.kept(), "message is", "messages are"), message.DLQTopicPrefix+p.spec.Group)})
	}
	how := "the group is offline: it goes on from there when it starts"
	if p.online {
		how = fmt.Sprintf("%s online and are told at their next pull; with push clients up to half a minute passes before they go on", words.Count(len(p.members), "member is", "members are"))
		if p.kind == remoting.ConsumeActively {
			how = fmt.Sprintf("%s online and fetch for themselves: one that keeps offsets of its own does not take it over; lite pull consumers do, after what they hold", words.Count(len(p.members), "member is", "members are"))
		}
	}
	notes = append(notes, Note{"group", how})
	if p.online && p.kind == remoting.ConsumeActively && skipped > 0 {
		notes = append(notes, Note{"mind", "a lite pull consumer commits behind what it holds, over what is set here, until a message comes behind it: stopped ones take the offset as it is"})
	}
	for _, t := range slices.Sorted(maps.Keys(p.waiting)) {
		what := "are kept and come as before"
		if p.spec.Retry == RetrySkip {
			what = "are skipped, whatever topic they come from"
		}
		notes = append(notes, Note{"retry", fmt.Sprintf("%s that wait in %s %s", words.Count(p.waiting[t], "message"), t, what)})
	}
	if len(p.waiting) == 0 {
		notes = append(notes, Note{"retry", "nothing waits in the retry topic; what still waits for its delay comes as before"})
	}
	return notes
}

// savedOffsetPlan is a plan as it is written to a file.
type savedOffsetPlan struct {
	Spec    OffsetSpec     `json:"spec"`
	Cluster []string       `json:"clusters"`
	Members []string       `json:"members,omitempty"`
	Steps   []offsetRecord `json:"steps"`
	Missing []string       `json:"missing,omitempty"`
}

// offsetRecord is a step in written forms.
type offsetRecord struct {
	QueueID
	Addr   string `json:"addr"`
	Via    string `json:"via,omitempty"`
	Before *int64 `json:"before"`
	After  int64  `json:"after"`
}

func (s *offsetStep) record() offsetRecord {
	r := offsetRecord{QueueID: s.QueueID, Addr: s.Addr, Via: s.Via, After: s.Move.Offset}
	if s.Before.OK {
		r.Before = &s.Before.Value
	}
	return r
}

// Saved is the plan in the form that can be written down.
func (p *OffsetPlan) Saved() any {
	s := savedOffsetPlan{Spec: p.spec, Cluster: p.clusters, Members: p.members, Missing: missingNames(p.missing)}
	for i := range p.steps {
		s.Steps = append(s.Steps, p.steps[i].record())
	}
	return s
}

// Before are the offsets that the plan moves, as they stood when it was made; a queue
// without one is left out.
func (p *OffsetPlan) Before() []OffsetValue {
	var out []OffsetValue
	for i := range p.steps {
		if s := &p.steps[i]; s.Before.OK && !s.idle() {
			out = append(out, OffsetValue{s.QueueID, s.Before.Value})
		}
	}
	return out
}
