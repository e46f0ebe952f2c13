package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/sorted"
)

// TopicConfig is a topic's entry in topics.json.
type TopicConfig struct {
	Name                string
	ReadQueues          int64
	WriteQueues         int64
	Perm                int64
	Order               bool
	SysFlag, FilterType string
	Attributes          map[string]string
}

// GroupConfig is a group's entry in subscriptionGroup.json.
type GroupConfig struct {
	Name          string
	ConsumeEnable bool
	Broadcast     bool
	Orderly       bool
	RetryQueues   int64
	RetryMax      int64
}

// Topics reads the topics of topics.json, or of its backup; none when there is no file that can be read. See JSON for what
// is wrong with one.
func (d *Dir) Topics() (map[string]TopicConfig, error) {
	table, err := d.table("topics.json", "topicConfigTable")
	if err != nil {
		return nil, err
	}
	out := map[string]TopicConfig{}
	for name, v := range table {
		t := object(v)
		out[name] = TopicConfig{
			Name: name, ReadQueues: number(t["readQueueNums"]), WriteQueues: number(t["writeQueueNums"]), Perm: number(t["perm"]),
			Order: t["order"] == true, SysFlag: fmt.Sprint(t["topicSysFlag"]), FilterType: fmt.Sprint(t["topicFilterType"]),
			Attributes: texts(t["attributes"]),
		}
	}
	return out, nil
}

// Groups reads the groups of subscriptionGroup.json, or of its backup.
func (d *Dir) Groups() (map[string]GroupConfig, error) {
	table, err := d.table("subscriptionGroup.json", "subscriptionGroupTable")
	if err != nil {
		return nil, err
	}
	out := map[string]GroupConfig{}
	for name, v := range table {
		g := object(v)
		out[name] = GroupConfig{
			Name: name, ConsumeEnable: g["consumeEnable"] != false, Broadcast: g["consumeBroadcastEnable"] == true,
			Orderly: g["consumeMessageOrderly"] == true, RetryQueues: number(g["retryQueueNums"]), RetryMax: number(g["retryMaxTimes"]),
		}
	}
	return out, nil
}

// GroupOffset is the committed offset of a group in a queue.
type GroupOffset struct {
	Group, Topic string
	Queue        int32
	Offset       int64
}

// The files of committed offsets. While light queues are on, Apache's broker keeps all of them in the second one.
const (
	fileOffsets      = "consumerOffset.json"
	fileLightOffsets = "lmqConsumerOffset.json"
	lightOffsets     = "lmqOffsetTable" // topic@group -> offset in the one queue that a light queue has
)

// Offsets reads the committed offsets of consumerOffset.json and lmqConsumerOffset.json, or of their backups, by group,
// topic and queue. Of an offset that both have, that of the file that was written last counts. Entries whose name is not
// topic@group come with an empty group.
func (d *Dir) Offsets() ([]GroupOffset, error) {
	var files []*JSONCopy
	for _, name := range []string{fileOffsets, fileLightOffsets} {
		j, err := d.JSON(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read configuration: %w", err)
		}
		if c := j.Good(); c != nil {
			files = append(files, c)
		}
	}
	sorted.Stably(files, func(a, b *JSONCopy) int { return a.ModTime.Compare(b.ModTime) })
	type place struct {
		group, topic string
		queue        int32
	}
	all := map[place]int64{}
	for _, c := range files {
		for name, v := range object(object(c.Tree)["offsetTable"]) {
			topic, group, _ := strings.Cut(name, "@")
			for q, off := range object(v) {
				if id, err := strconv.ParseInt(q, 10, 32); err == nil {
					all[place{group, topic, int32(id)}] = number(off)
				}
			}
		}
		for name, off := range object(object(c.Tree)[lightOffsets]) {
			topic, group, _ := strings.Cut(name, "@")
			all[place{group, topic, 0}] = number(off)
		}
	}
	var out []GroupOffset
	for p, off := range all {
		out = append(out, GroupOffset{p.group, p.topic, p.queue, off})
	}
	sorted.By(out, func(a, b GroupOffset) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Queue, b.Queue))
	})
	return out, nil
}

// DelayOffset is how far the deliverer of a delay level has come in its queue of SCHEDULE_TOPIC_XXXX.
type DelayOffset struct {
	Level  int32 // queue level-1
	Offset int64
}

// DelayOffsets reads delayOffset.json, or its backup, by level.
func (d *Dir) DelayOffsets() ([]DelayOffset, error) {
	table, err := d.table("delayOffset.json", "offsetTable")
	if err != nil {
		return nil, err
	}
	var out []DelayOffset
	for level, off := range table {
		if n, err := strconv.ParseInt(level, 10, 32); err == nil {
			out = append(out, DelayOffset{int32(n), number(off)})
		}
	}
	sorted.By(out, func(a, b DelayOffset) int { return cmp.Compare(a.Level, b.Level) })
	return out, nil
}

// table is one member of a configuration file.
func (d *Dir) table(file, member string) (map[string]any, error) {
	j, err := d.JSON(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read configuration: %w", err)
	}
	c := j.Good()
	if c == nil {
		return nil, nil
	}
	return object(object(c.Tree)[member]), nil
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func texts(v any) map[string]string {
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(object(v))) {
		out[k] = fmt.Sprint(object(v)[k])
	}
	return out
}
