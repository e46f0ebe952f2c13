package inspect

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"mqx/message"
)

// configKeys is the member that a configuration file must have for what its name says.
var configKeys = map[string]string{
	"topics.json":             "topicConfigTable",
	"subscriptionGroup.json":  "subscriptionGroupTable",
	fileOffsets:               "offsetTable",
	fileLightOffsets:          "offsetTable",
	"delayOffset.json":        "offsetTable",
	"consumerFilter.json":     "filterDataByTopic",
	"consumerOrderInfo.json":  "table",
	"topicQueueMapping.json":  "topicQueueMappingInfoMap",
	"messageRequestMode.json": "messageRequestModeMap",
	"timermetrics":            "timingCount",
	"transactionMetrics":      "transactionCount",
}

// configErr says what is wrong with a copy of a configuration file.
func configErr(file string, c *JSONCopy) error {
	if c.Err != nil {
		return c.Err
	}
	key := configKeys[file]
	if key == "" {
		return nil
	}
	o, ok := c.Tree.(map[string]any)
	if !ok {
		return errors.New("it is no object")
	}
	member, ok := o[key]
	if !ok {
		return fmt.Errorf("it has no member %s", key)
	}
	table, ok := member.(map[string]any)
	if !ok {
		return fmt.Errorf("its member %s is no object", key)
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if err := entryErr(file, name, table[name]); err != nil {
			return err
		}
	}
	return nil
}

// entryErr says what is wrong with an entry of a configuration file: what Apache's broker cannot read, and names that
// contradict each other.
func entryErr(file, name string, value any) error {
	switch file {
	case "topics.json", "subscriptionGroup.json":
		own := map[string]string{"topics.json": "topicName", "subscriptionGroup.json": "groupName"}[file]
		entry, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("the entry %q is no object", name)
		}
		if says, ok := entry[own].(string); ok && says != name {
			return fmt.Errorf("the entry %q has the %s %q", name, own, says)
		}
	case fileOffsets, fileLightOffsets:
		queues, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("the entry %q is no object", name)
		}
		for _, queue := range slices.Sorted(maps.Keys(queues)) {
			if err := offsetErr(queue, queues[queue]); err != nil {
				return fmt.Errorf("the entry %q: %w", name, err)
			}
		}
	case "delayOffset.json":
		return offsetErr(name, value)
	}
	return nil
}

// offsetErr says what is wrong with an offset and the number of its queue or level.
func offsetErr(number string, value any) error {
	if _, err := strconv.ParseInt(number, 10, 32); err != nil {
		return fmt.Errorf("%q is no number", number)
	}
	if _, ok := asInt(value); !ok {
		return fmt.Errorf("the offset of %s is no number", number)
	}
	return nil
}

// readTopics reads the names in topics.json.
func (v *verifier) readTopics() error {
	j, err := v.d.JSON("topics.json")
	if err != nil {
		return err
	}
	for _, c := range []*JSONCopy{j.Main, j.Backup} {
		if c == nil || configErr("topics.json", c) != nil {
			continue
		}
		v.topics = map[string]bool{}
		if table, ok := c.Tree.(map[string]any)["topicConfigTable"].(map[string]any); ok {
			for name := range table {
				v.topics[name] = true
			}
		}
		return nil
	}
	return nil
}

func (v *verifier) checkConfig() error {
	names, err := v.d.JSONNames()
	if err != nil {
		return err
	}
	topics := slices.Contains(names, "topics.json")
	if topics {
		j, err := v.d.JSON("topics.json")
		if err != nil {
			return err
		}
		topics = j.there()
	}
	if !topics && v.records > 0 && !v.d.Has(KindRocksDBConfig) && !v.live {
		v.found.add(&Finding{
			Kind: FindConfig, File: nameConfig + "/topics.json", Offset: -1, Phys: -1, Messages: 0,
			What: "there is no topics.json and no backup of it, and the log holds messages", Mend: "make it from the queues and the log", Derived: true,
		})
	}
	for _, name := range names {
		j, err := v.d.JSON(name)
		if err != nil {
			return err
		}
		v.checkJSON(j)
	}
	return nil
}

func (v *verifier) checkJSON(j *JSONFile) {
	var mainErr, bakErr error
	for _, c := range []**JSONCopy{&j.Main, &j.Backup} {
		if *c != nil && errors.Is((*c).Err, ErrNoFile) {
			*c = nil // told as what it is
		}
	}
	if j.Main != nil {
		mainErr = configErr(j.Name, j.Main)
	}
	if j.Backup != nil {
		bakErr = configErr(j.Name, j.Backup)
	}
	file := path.Join(nameConfig, j.Name)
	bad := func(kind FindingKind, file, mend string, derived bool, format string, args ...any) {
		v.found.add(&Finding{Kind: kind, File: file, Offset: -1, Phys: -1, Messages: 0, What: fmt.Sprintf(format, args...), Mend: mend, Derived: derived})
	}
	hasBackup := j.Backup != nil && bakErr == nil
	switch {
	case j.Main == nil && hasBackup:
		if v.live {
			return // it is being written
		}
		bad(FindConfig, file, "restore it from its backup", true, "the file is missing, its backup is there")
	case j.Main == nil && j.Backup != nil:
		bad(FindConfig, file, v.rebuildConfig(j.Name), j.Name == "topics.json", "the file is missing, and its backup cannot be read: %v", bakErr)
	case mainErr != nil && hasBackup:
		bad(FindConfig, file, "move it to mqx/quarantine and restore it from its backup", true, "the file cannot be read (%v), its backup can", mainErr)
	case mainErr != nil:
		why := "and there is no backup"
		if bakErr != nil {
			why = "nor can its backup: " + bakErr.Error()
		}
		bad(FindConfig, file, v.rebuildConfig(j.Name), j.Name == "topics.json", "the file cannot be read (%v), %s", mainErr, why)
	case bakErr != nil:
		bad(FindBackup, file+".bak", "make it a copy of the file", true, "the backup cannot be read: %v", bakErr)
	}
	if mainErr == nil && j.Main != nil {
		v.checkOffsets(j.Name, j.Main)
	}
}

// rebuildConfig says what repair does with a configuration file of which no copy can be read.
func (v *verifier) rebuildConfig(name string) string {
	switch name {
	case "topics.json":
		return "move it to mqx/quarantine and make it from the queues and the log"
	case "timermetrics", "transactionMetrics":
		return "move it to mqx/quarantine; the broker counts anew"
	}
	return "move it to mqx/quarantine: what it held is lost, the broker starts without it"
}

// offsetPlace is one consumer offset, or the progress of a delay level, that its queue cannot have.
type offsetPlace struct {
	name, table, key, queue string
	value, limit            int64
}

// checkOffsets compares offsets with the ends of their queues.
func (v *verifier) checkOffsets(name string, c *JSONCopy) {
	for _, p := range v.wrongOffsets(name, c) {
		f := &Finding{Kind: FindOffsetBeyond, File: path.Join(nameConfig, name), Offset: -1, Phys: -1, Messages: max(p.value-p.limit, 0)}
		f.What = fmt.Sprintf("%s has the offset %d in queue %s, which ends at %d", p.key, p.value, p.queue, p.limit)
		f.Mend, f.Derived = fmt.Sprintf("set it to %d", p.clamped()), false
		v.found.add(f)
	}
}

func (p offsetPlace) clamped() int64 { return min(max(p.value, 0), p.limit) }

func (v *verifier) wrongOffsets(name string, c *JSONCopy) []offsetPlace {
	tree, _ := c.Tree.(map[string]any)
	table, _ := tree["offsetTable"].(map[string]any)
	var out []offsetPlace
	check := func(key, queue string, value any, topic string, id int64) {
		n, ok := asInt(value)
		if !ok {
			return
		}
		if limit, known := v.queueMax(topic, int32(id)); known && (n > limit || n < 0) {
			out = append(out, offsetPlace{name, "offsetTable", key, queue, n, limit})
		}
	}
	switch name {
	case fileOffsets, fileLightOffsets:
		for _, name := range slices.Sorted(maps.Keys(table)) {
			topic, _, _ := strings.Cut(name, "@")
			queues, _ := table[name].(map[string]any)
			for _, queue := range slices.Sorted(maps.Keys(queues)) {
				if id, err := strconv.ParseInt(queue, 10, 32); err == nil {
					check(name, queue, queues[queue], topic, id)
				}
			}
		}
		light, _ := tree[lightOffsets].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(light)) {
			topic, _, _ := strings.Cut(name, "@")
			check(name, "0", light[name], topic, 0)
		}
	case "delayOffset.json":
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if level, err := strconv.ParseInt(name, 10, 32); err == nil {
				check("delay level "+name, strconv.FormatInt(level-1, 10), table[name], message.TopicSchedule, level-1)
			}
		}
	}
	return out
}

// asInt is a number of a configuration file.
func asInt(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

// queueMax is the offset behind the last message of a queue, as queue and log say; known is false when there is nothing
// to compare with.
func (v *verifier) queueMax(topic string, id int32) (limit int64, known bool) {
	for _, q := range v.queues.mu.byTopic[topic] {
		if q.key.ID != id {
			continue
		}
		limit, known = max(limit, q.mu.max, q.end), true
	}
	return limit, known && !v.live
}

// checkCheckpoint compares the checkpoint with the log.
func (v *verifier) checkCheckpoint() error {
	if v.records == 0 && !v.hasCkpt {
		return nil
	}
	f := &Finding{Kind: FindCheckpoint, File: nameCheckpoint, Offset: -1, Phys: -1, Messages: 0, Mend: "write one that claims nothing", Derived: true}
	if !v.hasCkpt {
		v.ckptWrong = true
		f.What = "there is none, or it is too short"
		v.found.add(f)
		return nil
	}
	c := v.ckpt
	for i, p := range []struct {
		name  string
		value int64
		limit int64
	}{
		{"physicMsgTimestamp", c.PhysicTime, v.maxStore},
		{"logicsMsgTimestamp", c.LogicsTime, v.maxStore},
		{"indexMsgTimestamp", c.IndexTime, v.maxStore},
		{"masterFlushedOffset", c.MasterFlushed, noLimit},
		{"confirmPhyOffset", c.ConfirmPhys, v.logEnd},
		{"logicsPhysicalOffset", c.LogicsPhysOffset, v.logEnd},
	} {
		if p.value < 0 || p.value > p.limit && v.records > 0 && !v.live {
			v.ckptWrong = true
			if v.endLost() && p.value >= 0 {
				return nil // another finding says that the log was longer
			}
			f.Offset, f.What = int64(8*i), fmt.Sprintf("%s is %d, the log says at most %d", p.name, p.value, p.limit)
			v.found.add(f)
			return nil
		}
	}
	return nil
}

// endLost reports whether a finding says that the log once was longer.
func (v *verifier) endLost() bool {
	list, _ := v.found.sorted()
	return slices.ContainsFunc(list, func(f *Finding) bool {
		return f.Kind == FindLogTorn || f.Kind == FindQueueAhead || f.Kind == FindLogSize && len(f.Affected) > 0
	})
}
