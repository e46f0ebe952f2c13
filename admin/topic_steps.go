package admin

import (
	"fmt"
	"maps"
	"slices"

	"mqx/internal/words"
)

// TopicState is the configuration of a topic on a broker, as a step shows it.
type TopicState struct {
	ReadQueues  int               `json:"readQueues" yaml:"readQueues"`
	WriteQueues int               `json:"writeQueues" yaml:"writeQueues"`
	Perm        string            `json:"perm" yaml:"perm"` // r, w, rw or none
	Order       bool              `json:"order" yaml:"order"`
	Attributes  map[string]string `json:"attributes,omitempty" yaml:"attributes,omitempty"`
	// PermBits and SysFlag are the numbers that Apache's tool prints.
	PermBits int `json:"-" yaml:"-"`
	SysFlag  int `json:"-" yaml:"-"`
}

// String is the configuration in a cell of a table.
func (t TopicState) String() string {
	text := fmt.Sprintf("%d/%d %s", t.ReadQueues, t.WriteQueues, t.Perm)
	if t.Order {
		text += " ordered"
	}
	for _, k := range slices.Sorted(maps.Keys(t.Attributes)) {
		text += " " + k + "=" + t.Attributes[k]
	}
	return text
}

// PermText is a permission as r, w or rw, "none" for neither.
func PermText(perm int) string {
	name := ""
	if perm&4 != 0 {
		name += "r"
	}
	if perm&2 != 0 {
		name += "w"
	}
	if name == "" {
		return "none"
	}
	return name
}

// Kind names the form of Saved.
func (p *TopicPlan) Kind() string { return kindTopic }

// Object is the topic.
func (p *TopicPlan) Object() string { return p.Topic }

// Title says what is done.
func (p *TopicPlan) Title() string { return p.Action + " topic " + p.Topic }

// Clusters are those of the brokers that are changed.
func (p *TopicPlan) Clusters() []string { return p.Cluster }

// Destroys reports whether messages go.
func (p *TopicPlan) Destroys() bool { return p.Action == ActionDelete }

// Missing are the brokers that could not be planned for.
func (p *TopicPlan) Missing() []TargetError { return p.Errors }

// Steps are the changes by broker.
func (p *TopicPlan) Steps() []Step { return topicSteps(p.Changes) }

// Notes are the messages that nobody will have read.
func (p *TopicPlan) Notes() []Note {
	end := "would no longer be reached"
	if p.Action == ActionDelete {
		end = "would be lost"
	}
	var out []Note
	for _, u := range p.Unread {
		out = append(out, Note{"unread", fmt.Sprintf("%s of group %s in queue %d of %s %s", words.Count(u.Count, "message"), u.Group, u.QueueID, u.Broker, end)})
	}
	return out
}

func topicSteps(changes []Change) []Step {
	out := make([]Step, 0, len(changes))
	for _, ch := range changes {
		s := Step{Broker: ch.Broker, Addr: ch.Addr, Action: ch.Action, Warning: ch.Warning}
		if ch.Before != nil {
			s.Before = ch.Before.state()
		}
		if ch.After != nil {
			s.After = ch.After.state()
		}
		if ch.Before != nil || ch.After != nil {
			s.Text = ch.Before.short() + " -> " + ch.After.short()
		}
		out = append(out, s)
	}
	return out
}

func (t *TopicBroker) state() TopicState {
	return TopicState{t.ReadQueues, t.WriteQueues, PermText(t.Perm), t.Order, t.Attributes, t.Perm, t.SysFlag}
}

func (t *TopicBroker) short() string {
	if t == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d read, %d write queues, %s", t.ReadQueues, t.WriteQueues, PermText(t.Perm))
}
