package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

const (
	// syncEvery is the time between two looks at the tables of the master, as in Apache.
	syncEvery = 3 * time.Second
	// timerCheckBytes is the size of config/timercheck.
	timerCheckBytes = 4096
)

// tables is what a slave has seen of its master's tables. It belongs to one goroutine.
type tables struct {
	b      *Broker
	master string // whose these are
	// replaced says that another master was followed before.
	replaced bool
	// notes says that the master tells what was set back. Of others an offset that goes back counts as set back.
	notes  bool
	topics map[string]remoting.TopicConfig             // nil: not seen yet
	groups map[string]remoting.SubscriptionGroupConfig // the same
	// topicsAt and groupsAt are the versions of those: a master whose version goes back has lost some, not deleted them.
	topicsAt, groupsAt int64
	offsets            map[string]map[int32]int64
	files              map[string][]byte // of config, as they were last written
	between            func()            // for tests: comes between two steps of mergeTable
}

// sync takes over what has changed at the master. What fails does not keep the rest from being taken over.
func (t *tables) sync(ctx context.Context, master string) error {
	if t.master != master {
		*t = tables{b: t.b, master: master, replaced: t.master != "", files: map[string][]byte{}}
	}
	if t.offsets == nil && t.b.slave != nil && len(t.b.offsets.own.copy()) > 0 {
		if err := t.sameEpoch(ctx); err != nil {
			return err
		}
	}
	var errs []error
	parts := t.parts()
	for _, name := range []string{partTopics, partGroups, partOffsets, partDelays, partModes, partTimer} {
		if err := parts[name](ctx); err != nil {
			errs = append(errs, fmt.Errorf("cannot take over the %s of %s: %w", name, master, err))
		}
	}
	return errors.Join(errs...)
}

// sameEpoch notes that another master has taken the place of the one that was away when consumers committed here, before this
// slave was started anew: its epoch is another than the one that was known then.
func (t *tables) sameEpoch(ctx context.Context) error {
	if err := t.b.slave.learnEpoch(ctx, t.master); err != nil {
		return err
	}
	t.replaced = t.replaced || t.b.role.Epoch() != t.b.offsets.ownEpoch.Load()
	return nil
}

// parts are the tables that a slave takes over.
func (t *tables) parts() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		partTopics:  t.syncTopics,
		partGroups:  t.syncGroups,
		partOffsets: t.syncOffsets,
		partDelays: func(ctx context.Context) error {
			return t.syncFile(ctx, remoting.ReqGetAllDelayOffset, "delayOffset.json")
		},
		partModes: func(ctx context.Context) error {
			return t.syncFile(ctx, remoting.ReqGetAllMessageRequestMode, "messageRequestMode.json")
		},
		partTimer: t.syncTimer,
	}
}

// ask sends a request without fields to the master.
func (t *tables) ask(ctx context.Context, code int32) ([]byte, error) {
	return t.b.askMaster(ctx, t.master, code)
}

// askMaster sends a request without fields to a master and returns the body of the answer.
func (b *Broker) askMaster(ctx context.Context, master string, code int32) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, syncEvery)
	defer cancel()
	resp, err := b.client.Call(ctx, master, remoting.NewRequest(code, nil))
	if err != nil {
		return nil, err
	}
	if resp.Code != remoting.RespSuccess {
		return nil, &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(code), Addr: master}
	}
	return bytes.Clone(resp.Body), nil
}

func (t *tables) syncTopics(ctx context.Context) error {
	body, err := t.ask(ctx, remoting.ReqGetAllTopicConfig)
	if err != nil {
		return err
	}
	var told remoting.TopicConfigAndMappingTable
	if err := fastjson.Unmarshal(body, &told); err != nil {
		return err
	}
	if len(told.TopicConfigTable) == 0 {
		return errors.New("it has none, not even those of every broker")
	}
	// The mappings first: a static topic is never served as an ordinary one.
	if err := t.b.statics.take(told.MappingDetailMap, told.MappingDataVersion); err != nil {
		return err
	}
	configs := slices.SortedFunc(maps.Values(told.TopicConfigTable), func(a, b remoting.TopicConfig) int { return strings.Compare(a.TopicName, b.TopicName) })
	t.b.topics.Put(configs, t.saved("topics"))
	if told.DataVersion.Counter < t.topicsAt {
		t.b.log.Warn("the topics of the master are at an older version than before; none is deleted here", "was", t.topicsAt, "is", told.DataVersion.Counter)
		t.topics = nil
	}
	t.topicsAt = told.DataVersion.Counter
	// What the master had and has no more was deleted there. What it never had here is none of its business.
	if gone := gone(t.topics, told.TopicConfigTable); len(gone) > 0 {
		t.b.log.Info("topics deleted by the master", "topics", gone)
		t.b.topics.Delete(gone, func(err error) {
			if err == nil {
				err = t.b.dropTopicData(gone)
			}
			t.saved("topics")(err)
		})
	}
	t.topics = told.TopicConfigTable
	return nil
}

func (t *tables) syncGroups(ctx context.Context) error {
	told, err := readGroups(ctx, t.b.client, t.master)
	if err != nil {
		return err
	}
	var changed []remoting.SubscriptionGroupConfig
	for name, c := range told.SubscriptionGroupTable {
		if old, ok := t.groups[name]; !ok || !sameJSON(old, c) {
			changed = append(changed, c)
		}
	}
	if len(changed) > 0 {
		if err := t.b.groups.Put(changed, t.saved("groups")); err != nil {
			return err
		}
	}
	if told.DataVersion.Counter < t.groupsAt {
		t.b.log.Warn("the groups of the master are at an older version than before; none is deleted here", "was", t.groupsAt, "is", told.DataVersion.Counter)
		t.groups = nil
	}
	t.groupsAt = told.DataVersion.Counter
	for _, name := range gone(t.groups, told.SubscriptionGroupTable) {
		t.b.log.Info("group deleted by the master", "group", name)
		t.b.groups.Delete(name, t.saved("groups"))
		t.b.offsets.RemoveGroup(name)
	}
	t.groups = told.SubscriptionGroupTable
	return nil
}

func sameJSON(a, b any) bool {
	x, err := fastjson.Marshal(a)
	y, err2 := fastjson.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// gone are the names of a table that its new version has no more.
func gone[V any](before, told map[string]V) []string {
	var out []string
	for name := range before {
		if _, ok := told[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (t *tables) saved(what string) func(error) {
	return func(err error) {
		if err != nil {
			t.b.log.Error("what the master has changed could not be saved", "table", what, "error", err)
		}
	}
}

func (t *tables) syncOffsets(ctx context.Context) error {
	req := remoting.NewRequest(remoting.ReqGetAllConsumerOffset, nil)
	req.Fields.SetInt(remoting.FieldSetBackSince, t.b.offsets.taken.since(t.master))
	body, err := t.b.askAt(ctx, t.master, req)
	if err != nil {
		return err
	}
	var told remoting.ToldOffsets
	if err := fastjson.Unmarshal(body, &told); err != nil {
		return err
	}
	t.takeTold(&told, t.b.store.EndOffset)
	return nil
}

// mergeTable takes over what the master has told of all offsets; end is where the queues of this slave end.
func (t *tables) mergeTable(told map[string]map[int32]int64, end func(topic string, queue int32) int64) {
	own := func(key string, queue int32) (int64, bool) {
		topic, group, ok := splitOffsetKey(key)
		if !ok {
			return 0, false
		}
		return t.b.offsets.Committed(topic, group, queue)
	}
	if t.offsets == nil {
		t.lowerOffsets(told, end)
	}
	t.step()
	if t.b.offsets.settleOwn(told) {
		_ = t.b.offsets.Save() // logs its failure and is tried again: what is settled must not come up again after a reset
	}
	t.step()
	before := t.offsets
	if t.notes {
		before = nil
	}
	merged := mergeOffsets(before, told, own)
	t.step()
	for key, queues := range merged {
		topic, group, ok := splitOffsetKey(key)
		if !ok || len(topic)+len(group) > 2*message.MaxTopicLen {
			continue
		}
		for q, off := range queues {
			was, known := before[key][q]
			t.takeOffset(topic, group, q, off, 0, known && off < was)
		}
	}
	if t.offsets = told; t.offsets == nil {
		t.offsets = map[string]map[int32]int64{}
	}
}

// takeOffset stores an offset that the master has told: back only where it is a reset, of that time (as of commitAsOf), since a consumer
// may commit here meanwhile.
func (t *tables) takeOffset(topic, group string, queue int32, offset, when int64, reset bool) {
	t.b.offsets.commitAsOf([]byte(topic), []byte(group), queue, offset, when, func(old int64) bool { return reset || offset > old })
}

func (t *tables) step() {
	if t.between != nil {
		t.between()
	}
}

// lowerOffsets is for the first look at a master: the one before may have told of offsets of messages that are lost with it.
// They are set back to the ends of the queues, but not below what this master tells: then this slave is only behind. What
// consumers committed here is for a master that comes back; it is lost too where another one has taken its place.
func (t *tables) lowerOffsets(told map[string]map[int32]int64, end func(topic string, queue int32) int64) {
	own := t.b.offsets.own.copy()
	t.b.offsets.lower(func(k offsetKey, queue int32) int64 {
		if _, here := own[ownCommit{k, queue}]; here && !t.replaced {
			return math.MaxInt64
		}
		return max(end(k.topic, queue), told[k.String()][queue])
	})
}

// errNotSynced is why a slave does not take over what it is told: it has not looked at the whole tables yet.
var errNotSynced = errors.New("this slave has not taken over the tables of its master yet")

// mergeOffsets decides which of the offsets that a master has told a slave takes over. before is what the master told the
// time before, nil at the first time; own is what the slave has (ok false: nothing).
//
// A slave may be ahead of its master, where consumers committed to it while the master was away: what the master only
// repeats does not count then. An offset that has moved back at the master since it was told last is a reset, and counts.
func mergeOffsets(before, told map[string]map[int32]int64, own func(key string, queue int32) (int64, bool)) map[string]map[int32]int64 {
	take := map[string]map[int32]int64{}
	for key, queues := range told {
		for q, off := range queues {
			was, known := before[key][q]
			have, ok := own(key, q)
			reset := known && off < was
			if ok && (have == off || have > off && !reset) {
				continue
			}
			if take[key] == nil {
				take[key] = map[int32]int64{}
			}
			take[key][q] = off
		}
	}
	return take
}

// syncFile keeps a file of config as the master has it. It is read when this broker becomes a master.
func (t *tables) syncFile(ctx context.Context, code int32, name string) error {
	body, err := t.ask(ctx, code)
	if err != nil || bytes.Equal(t.files[name], body) {
		return err
	}
	var table map[string]any
	if err := fastjson.Unmarshal(body, &table); err != nil {
		return err
	}
	if err := jsonfile.Save(t.b.fsys, t.b.configFile(name), body); err != nil {
		return err
	}
	t.files[name] = body
	return nil
}

// syncTimer keeps config/timercheck as the master has it; of the wheel and the timer log, which are built again from the
// timer topic, it says nothing. A master without a timer has none.
func (t *tables) syncTimer(ctx context.Context) error {
	const name = "timercheck"
	body, err := t.ask(ctx, remoting.ReqGetTimerCheckPoint)
	var refused *remoting.ResponseError
	if errors.As(err, &refused) {
		return nil
	}
	if err != nil || len(body) < 32 || len(body) > timerCheckBytes || bytes.Equal(t.files[name], body) {
		return err
	}
	file := make([]byte, timerCheckBytes)
	copy(file, body)
	clear(file[8:16]) // the position in the timer log, which is the master's own
	if err := vfs.WriteFileDurable(t.b.fsys, filepath.Join(filepath.Dir(t.b.configFile(name)), name), file); err != nil {
		return err
	}
	t.files[name] = body
	return nil
}
