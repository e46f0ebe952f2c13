package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"mqx/internal/fastjson"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// Metadata are topics and groups, as a file carries them from one cluster to another.
// It is the form that mqadmin's exportMetadata writes, but for what differs between
// brokers: there the numbers of queues are added up, here the greater one is taken,
// since an import makes them on every broker.
type Metadata struct {
	ExportTime             int64                                       `json:"exportTime,omitempty"` // ms
	TopicConfigTable       map[string]remoting.TopicConfig             `json:"topicConfigTable,omitempty"`
	SubscriptionGroupTable map[string]remoting.SubscriptionGroupConfig `json:"subscriptionGroupTable,omitempty"`
	// Differs are the topics and groups of which brokers have different
	// configurations.
	Differs []string `json:"-"`
}

// ExportOptions narrows an export.
type ExportOptions struct {
	Topics, Groups bool
	Special        bool // retry and dead letter topics of groups as well
	Sum            bool // add the numbers of queues up, as mqadmin does
}

// ExportMetadata collects topics and groups from the masters of a target, but for
// those that brokers make for themselves.
func (c *Client) ExportMetadata(ctx context.Context, t Target, o ExportOptions) (*Metadata, []TargetError, error) {
	brokers, err := c.primaries(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	own, err := c.ownTopics(ctx)
	if err != nil {
		return nil, nil, err
	}
	m := &Metadata{}
	if o.Topics {
		m.TopicConfigTable = map[string]remoting.TopicConfig{}
	}
	if o.Groups {
		m.SubscriptionGroupTable = map[string]remoting.SubscriptionGroupConfig{}
	}
	differs := map[string]bool{}
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		var topics map[string]remoting.TopicConfig
		var groups map[string]remoting.SubscriptionGroupConfig
		var err error
		if o.Topics {
			if topics, err = c.topicTable(ctx, b.Addr); err != nil {
				return err
			}
		}
		if o.Groups {
			if groups, err = c.groupTable(ctx, b.Addr); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for name, tc := range topics {
			if kind := topicKind(name, own); kind == KindSystem || kind != KindNormal && !o.Special {
				continue
			}
			if old, ok := m.TopicConfigTable[name]; ok {
				tc = mergeTopics(old, tc, o.Sum, differs)
			}
			m.TopicConfigTable[name] = tc
		}
		for name, g := range groups {
			if message.IsSystemGroup(name) {
				continue
			}
			if old, ok := m.SubscriptionGroupTable[name]; ok {
				g = mergeGroups(old, g, o.Sum, differs)
			}
			m.SubscriptionGroupTable[name] = g
		}
		return nil
	})
	m.Differs = slices.Sorted(maps.Keys(differs))
	return m, errs, nil
}

func mergeTopics(a, b remoting.TopicConfig, sum bool, differs map[string]bool) remoting.TopicConfig {
	x, y := topicBroker(Broker{}, a), topicBroker(Broker{}, b)
	if !sameTopic(&x, &y) {
		differs["topic "+a.TopicName] = true
	}
	if sum {
		b.ReadQueueNums, b.WriteQueueNums = a.ReadQueueNums+b.ReadQueueNums, a.WriteQueueNums+b.WriteQueueNums
		return b
	}
	b.ReadQueueNums, b.WriteQueueNums = max(a.ReadQueueNums, b.ReadQueueNums), max(a.WriteQueueNums, b.WriteQueueNums)
	b.Perm |= a.Perm
	b.Order = a.Order || b.Order
	return b
}

func mergeGroups(a, b remoting.SubscriptionGroupConfig, sum bool, differs map[string]bool) remoting.SubscriptionGroupConfig {
	if !sameGroup(a, b) {
		differs["group "+a.GroupName] = true
	}
	if sum {
		b.RetryQueueNums += a.RetryQueueNums
		return b
	}
	b.RetryQueueNums, b.RetryMaxTimes = max(a.RetryQueueNums, b.RetryQueueNums), max(a.RetryMaxTimes, b.RetryMaxTimes)
	b.ConsumeEnable = a.ConsumeEnable || b.ConsumeEnable
	return b
}

// JSON is the file, sorted by names.
func (m *Metadata) JSON() ([]byte, error) {
	text, err := fastjson.MarshalPretty(m)
	if err != nil {
		return nil, fmt.Errorf("cannot write topics and groups: %w", err)
	}
	return append(text, '\n'), nil
}

// ParseMetadata reads the text of a file: what Metadata.JSON and mqadmin's
// exportMetadata write, or a list of topic or group configurations, as mqadmin's
// updateTopicList and updateSubGroupList take it. Attributes may have the + of a
// request before their names.
func ParseMetadata(data []byte) (*Metadata, error) {
	m := &Metadata{TopicConfigTable: map[string]remoting.TopicConfig{}, SubscriptionGroupTable: map[string]remoting.SubscriptionGroupConfig{}}
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("cannot read list of topics or groups: %w", err)
		}
		for i, text := range list {
			if err := m.readEntry(text); err != nil {
				return nil, fmt.Errorf("cannot use entry %d of the list: %w", i+1, err)
			}
		}
	} else {
		var raw struct {
			ExportTime             int64                      `json:"exportTime"`
			TopicConfigTable       map[string]json.RawMessage `json:"topicConfigTable"`
			SubscriptionGroupTable map[string]json.RawMessage `json:"subscriptionGroupTable"`
		}
		if err := json.Unmarshal(data, &raw); err != nil {
			return nil, fmt.Errorf("cannot read topics and groups: %w", err)
		}
		m.ExportTime = raw.ExportTime
		for name, text := range raw.TopicConfigTable {
			if err := m.readTopic(name, text); err != nil {
				return nil, fmt.Errorf("cannot use topic %q: %w", name, err)
			}
		}
		for name, text := range raw.SubscriptionGroupTable {
			if err := m.readGroup(name, text); err != nil {
				return nil, fmt.Errorf("cannot use group %q: %w", name, err)
			}
		}
	}
	if len(m.TopicConfigTable)+len(m.SubscriptionGroupTable) == 0 {
		return nil, fmt.Errorf("cannot use the file: there is neither a topic nor a group in it")
	}
	return m, nil
}

// readEntry reads an entry of a list.
func (m *Metadata) readEntry(text []byte) error {
	var names struct {
		TopicName string `json:"topicName"`
		GroupName string `json:"groupName"`
	}
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	switch {
	case names.TopicName != "":
		return m.readTopic(names.TopicName, text)
	case names.GroupName != "":
		return m.readGroup(names.GroupName, text)
	}
	return errors.New("it has neither topicName nor groupName")
}

// readTopic reads a topic; what is not said is the default of Apache's class.
func (m *Metadata) readTopic(name string, text []byte) error {
	if _, twice := m.TopicConfigTable[name]; twice {
		return errTwice
	}
	t := remoting.TopicConfig{ReadQueueNums: 16, WriteQueueNums: 16, Perm: permReadWrite, TopicFilterType: remoting.FilterSingleTag}
	if err := fastjson.Unmarshal(text, &t); err != nil {
		return err
	}
	if t.TopicName = cmp.Or(t.TopicName, name); t.TopicName != name {
		return fmt.Errorf("it is another one, %q", t.TopicName)
	}
	t.Attributes = plainAttributes(t.Attributes)
	m.TopicConfigTable[name] = t
	return nil
}

// readGroup reads a group; what is not said is the default of Apache's class.
func (m *Metadata) readGroup(name string, text []byte) error {
	if _, twice := m.SubscriptionGroupTable[name]; twice {
		return errTwice
	}
	g := remoting.NewSubscriptionGroupConfig("")
	if err := fastjson.Unmarshal(text, &g); err != nil {
		return err
	}
	if g.GroupName = cmp.Or(g.GroupName, name); g.GroupName != name {
		return fmt.Errorf("it is another one, %q", g.GroupName)
	}
	g.Attributes = plainAttributes(g.Attributes)
	m.SubscriptionGroupTable[name] = g
	return nil
}

var errTwice = errors.New("it comes twice")

// plainAttributes takes the + of a request from names; what has a - is none.
func plainAttributes(in map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range in {
		if !strings.HasPrefix(k, "-") {
			out[strings.TrimPrefix(k, "+")] = v
		}
	}
	return out
}

// PlanImport plans to make topics and groups on the masters of a target what a file
// says. Groups come first, so that no queue is read by a group without its
// configuration; each plan is one kind.
func (c *Client) PlanImport(ctx context.Context, t Target, m *Metadata) ([]Plan, error) {
	var plans []Plan
	if len(m.SubscriptionGroupTable) > 0 {
		p, err := c.PlanPutGroups(ctx, t, importObject(t), "import "+words.Count(int64(len(m.SubscriptionGroupTable)), "group"), slices.Collect(maps.Values(m.SubscriptionGroupTable)))
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	if len(m.TopicConfigTable) > 0 {
		p, err := c.PlanPutTopics(ctx, t, importObject(t), "import "+words.Count(int64(len(m.TopicConfigTable)), "topic"), slices.Collect(maps.Values(m.TopicConfigTable)))
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// importObject is the name that is asked for: that of what is changed.
func importObject(t Target) string { return cmp.Or(t.Broker, t.Cluster, "import") }
