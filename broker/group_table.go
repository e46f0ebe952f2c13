package broker

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

// maxGroups bounds the subscription groups of a broker.
const maxGroups = 200_000

// maxForbidden bounds the topics that one group may not read.
const maxForbidden = 10_000

// forbidRead is the bit of the forbidden table that stops a group from reading a topic.
const forbidRead = 1 << 2

// group is one subscription group as it stands; replaced, never changed, apart from saved.
type group struct {
	remoting.SubscriptionGroupConfig
	saved atomic.Bool
}

// groupRules decide which groups come into being by themselves.
type groupRules struct {
	AutoCreate     bool
	CreateSysGroup bool
}

// groupTable is the subscription groups of the broker. Safe to share.
type groupTable struct {
	rules func() groupRules
	light bool // groups of light queues are served
	fsys  vfs.FS
	path  string
	now   func() time.Time
	log   *slog.Logger
	saver *saver

	mu struct {
		sync.RWMutex
		groups    map[string]*group
		forbidden map[string]map[string]int32
		version   remoting.DataVersion
	}
}

func newGroupTable(rules func() groupRules, fsys vfs.FS, path string, now func() time.Time, log *slog.Logger) *groupTable {
	t := &groupTable{rules: rules, fsys: fsys, path: path, now: now, log: log}
	t.saver = newSaver(t.write)
	t.mu.groups = map[string]*group{}
	t.mu.forbidden = map[string]map[string]int32{}
	t.mu.version = remoting.NewDataVersion(now())
	return t
}

func newGroup(c remoting.SubscriptionGroupConfig) *group {
	return &group{SubscriptionGroupConfig: c}
}

// Load reads subscriptionGroup.json (or its backup) over the built-in groups.
func (t *groupTable) Load() error {
	for _, name := range message.SystemGroups() {
		t.mu.groups[name] = newGroup(remoting.NewSubscriptionGroupConfig(name))
	}
	var read remoting.SubscriptionGroupTable
	src, err := jsonfile.Load(t.fsys, t.path, func(b []byte) error {
		read = remoting.SubscriptionGroupTable{}
		return fastjson.Unmarshal(b, &read)
	})
	if err != nil {
		return err
	}
	if src == jsonfile.Backup {
		t.log.Warn("subscription groups were loaded from the backup", "file", t.path)
	}
	for name, c := range read.SubscriptionGroupTable {
		c.GroupName = name
		if c.Attributes == nil {
			c.Attributes = map[string]string{}
		}
		g := newGroup(c)
		g.saved.Store(true)
		t.mu.groups[name] = g
	}
	if read.ForbiddenTable != nil {
		t.mu.forbidden = read.ForbiddenTable
	}
	if src != jsonfile.None {
		t.mu.version = read.DataVersion
	}
	for _, g := range t.mu.groups {
		if !g.saved.Load() {
			return t.saver.Save()
		}
	}
	return nil
}

// Get returns a group, nil when there is none.
func (t *groupTable) Get(name string) *group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if g := t.mu.groups[name]; g != nil || !t.light || !isLight(name) {
		return g
	}
	return lightGroup(name)
}

// GetBytes is Get without a conversion.
func (t *groupTable) GetBytes(name []byte) *group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if g := t.mu.groups[string(name)]; g != nil || !t.light || !isLight(string(name)) {
		return g
	}
	return lightGroup(string(name))
}

// FindOrCreate returns a group and creates it where the rules allow that; nil
// when there is none.
func (t *groupTable) FindOrCreate(name string) *group {
	if g := t.Get(name); g != nil {
		return g
	}
	system, rules := message.IsSystemGroup(name), t.rules()
	if system && !rules.CreateSysGroup || !system && !rules.AutoCreate || message.ValidateGroup(name) != nil {
		return nil
	}
	t.mu.Lock()
	g := t.mu.groups[name]
	if g != nil || len(t.mu.groups) >= maxGroups {
		t.mu.Unlock()
		return g
	}
	g = newGroup(remoting.NewSubscriptionGroupConfig(name))
	t.mu.groups[name] = g
	t.mu.version = t.mu.version.NextVersion(t.now())
	t.mu.Unlock()
	t.log.Info("subscription group created", "group", name)
	t.saver.Then(nil)
	return g
}

// Put creates or changes groups; done as in topicTable.Put. A group refused
// leaves all as they are.
func (t *groupTable) Put(configs []remoting.SubscriptionGroupConfig, done func(error)) error {
	t.mu.Lock()
	next := make([]*group, 0, len(configs))
	for _, c := range configs {
		if err := message.ValidateGroup(c.GroupName); err != nil {
			t.mu.Unlock()
			return err
		}
		if len(c.SubscriptionDataSet) > 0 {
			t.mu.Unlock()
			return refuse(remoting.RespInvalidParameter, "subscriptionDataSet of group %s: %s (useStaticSubscription)", c.GroupName, noEffectReasons["staticsub"])
		}
		switch c.GroupRetryPolicy.Type {
		case "": // null
			c.GroupRetryPolicy.Type = remoting.RetryCustomized
		case remoting.RetryCustomized, remoting.RetryExponential:
		default:
			t.mu.Unlock()
			return refuse(remoting.RespInvalidParameter, "groupRetryPolicy.type of group %s: %q is neither %s nor %s",
				c.GroupName, c.GroupRetryPolicy.Type, remoting.RetryCustomized, remoting.RetryExponential)
		}
		old := t.mu.groups[c.GroupName]
		var current map[string]string
		if old != nil {
			current = old.Attributes
		} else if len(t.mu.groups) >= maxGroups {
			t.mu.Unlock()
			return fmt.Errorf("the broker has %d groups, which is the limit", maxGroups)
		}
		merged, err := alterAttributes(groupAttributes, old == nil, current, signed(c.Attributes), false)
		if err != nil {
			t.mu.Unlock()
			return err
		}
		c.Attributes = merged
		next = append(next, newGroup(c))
	}
	for _, g := range next {
		t.mu.groups[g.GroupName] = g
		t.mu.version = t.mu.version.NextVersion(t.now())
	}
	t.mu.Unlock()
	t.saver.Then(done)
	return nil
}

// Delete removes a group and what is forbidden to it. done as in Put.
func (t *groupTable) Delete(name string, done func(error)) bool {
	t.mu.Lock()
	g := t.mu.groups[name]
	if g == nil {
		t.mu.Unlock()
		done(nil)
		return false
	}
	delete(t.mu.groups, name)
	delete(t.mu.forbidden, name)
	t.mu.version = t.mu.version.NextVersion(t.now())
	t.mu.Unlock()
	t.saver.Then(done)
	return true
}

// Forbidden reports whether a group may not read a topic.
func (t *groupTable) Forbidden(group, topic []byte) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.mu.forbidden) == 0 {
		return false
	}
	return t.mu.forbidden[string(group)][string(topic)]&forbidRead != 0
}

// SetForbidden allows or forbids a group to read a topic.
func (t *groupTable) SetForbidden(group, topic string, forbid bool, done func(error)) {
	t.mu.Lock()
	m := t.mu.forbidden[group]
	if _, had := m[topic]; forbid && !had && (len(m) >= maxForbidden || m == nil && len(t.mu.forbidden) >= maxGroups) {
		t.mu.Unlock()
		done(fmt.Errorf("the limit of %d forbidden topics a group is reached", maxForbidden))
		return
	}
	if m == nil {
		m = map[string]int32{}
		t.mu.forbidden[group] = m
	}
	if forbid {
		m[topic] |= forbidRead
	} else if m[topic] &^= forbidRead; m[topic] == 0 {
		delete(m, topic)
	}
	if len(m) == 0 {
		delete(t.mu.forbidden, group)
	}
	t.mu.version = t.mu.version.NextVersion(t.now())
	t.mu.Unlock()
	t.saver.Then(done)
}

// All returns the groups by name, what is forbidden, and their version.
func (t *groupTable) All() remoting.SubscriptionGroupTable {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := remoting.SubscriptionGroupTable{
		DataVersion:            t.mu.version,
		ForbiddenTable:         map[string]map[string]int32{},
		SubscriptionGroupTable: make(map[string]remoting.SubscriptionGroupConfig, len(t.mu.groups)),
	}
	for name, g := range t.mu.groups {
		out.SubscriptionGroupTable[name] = g.SubscriptionGroupConfig
	}
	for g, topics := range t.mu.forbidden {
		m := map[string]int32{}
		for topic, bits := range topics {
			m[topic] = bits
		}
		out.ForbiddenTable[g] = m
	}
	return out
}

// Names lists the groups, sorted.
func (t *groupTable) Names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]string, 0, len(t.mu.groups))
	for name := range t.mu.groups {
		out = append(out, name)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

func (t *groupTable) write() error {
	t.mu.RLock()
	held := make([]*group, 0, len(t.mu.groups))
	for _, g := range t.mu.groups {
		held = append(held, g)
	}
	t.mu.RUnlock()
	b, err := fastjson.MarshalPretty(t.All())
	if err != nil {
		return err
	}
	if err := jsonfile.Save(t.fsys, t.path, b); err != nil {
		t.log.Error("subscription groups could not be saved", "file", t.path, "error", err)
		return err
	}
	for _, g := range held {
		g.saved.Store(true)
	}
	return nil
}
