package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/words"
	"mqx/message"
	"mqx/store/timer"
)

// verify turns what Verify finds into what the target makes of it.
func (p *preflight) verify() error {
	var err error
	if p.report, err = Verify(p.ctx, p.d, VerifyOptions{OnProgress: p.o.OnProgress, traits: true}); err != nil {
		return err
	}
	start, err := p.recoveryStart()
	if err != nil {
		return err
	}
	reach, err := p.queuesReach()
	if err != nil {
		return err
	}
	for _, f := range p.report.Findings {
		p.finding(f, start, reach)
	}
	return nil
}

// finding judges one finding. What recovery does to the log itself is judged by recovery.
func (p *preflight) finding(f *Finding, start, reach int64) {
	dirty := p.d.in.Abort
	switch f.Kind {
	case FindLogHole:
		p.note("log-hole", f.File, "log files are missing between others: the broker starts and steps over them", "")
	case FindLogTorn:
		p.note("log-torn", f.File, "the log ends in bytes that are no record: the broker cuts them", "")
	case FindLogMisplaced, FindForeign:
		p.misplaced(f)
	case FindQueueMissing, FindQueueBehind:
		switch {
		case !p.apache() || f.Note || reach < 0:
			p.note(string(f.Kind), f.File, "built again from the log when the broker starts", "")
		case dirty && f.Phys >= 0 && f.Phys < start:
			p.add(RiskLoss, string(f.Kind), f.File, f.Messages, fmt.Sprintf("the broker builds queues again only from %d on: %s", start, f.What), "mqx store repair")
		case dirty:
			p.note(string(f.Kind), f.File, "built again from the log when the broker starts", "")
		case f.Phys > reach:
			p.note(string(f.Kind), f.File, "built again from the log when the broker starts", "")
		default:
			p.add(RiskLoss, string(f.Kind), f.File, f.Messages, "after a clean stop the broker goes on behind the newest record that any queue has: "+f.What, "mqx store repair")
		}
	case FindQueueAhead:
		p.note(string(f.Kind), f.File, "what points beyond the log is cut when the broker starts", "")
	case FindQueueUnits, FindQueueFiles, FindRecordPlace:
		p.queueDamage(f)
	case FindIndexMissing, FindIndexDamaged, FindIndexEntries, FindIndexBehind:
		switch {
		case f.Note, !p.apache(), dirty && f.Kind != FindIndexEntries:
			p.note(string(f.Kind), f.File, "built again when the broker starts", "")
		default:
			p.add(RiskLoss, string(f.Kind), f.File, f.Messages, "keys and ids are not found: after a clean stop the broker does not build the index again", "mqx store repair")
		}
	case FindTimerWheel, FindTimerLog, FindTimerCheckpoint:
		switch {
		case p.old(): // has no timer: pending tells
		case f.Note || !p.apache():
			p.note(string(f.Kind), f.File, f.What, "")
		default:
			p.add(RiskMisuse, string(f.Kind), f.File, f.Messages, "timer messages may come twice or never: "+f.What, "mqx store repair")
		}
	case FindIndexAhead, FindOffsetTwice, FindOffsetBeyond, FindBackup, FindCheckpoint, FindRecordsUnseen, FindFillers, FindState:
		p.note(string(f.Kind), f.File, f.What, "")
	case FindLogSize:
		if len(p.d.log.files) == 1 && p.apache() { // of several mixedSizes tells
			p.add(RiskStart, "file-size", f.File, f.Messages, f.What, "mqx store repair")
		}
	case FindLogRot, FindLogEmpty, FindConfig, FindKind, FindInUse, FindDirty:
		// judged elsewhere
	}
}

// misplaced judges files that are none of the store, or lie elsewhere.
func (p *preflight) misplaced(f *Finding) {
	dir := strings.SplitN(f.File, "/", 2)[0]
	switch {
	case f.Kind == FindLogMisplaced:
		p.add(RiskLoss, string(f.Kind), f.File, f.Messages, f.What, "mqx store repair")
	case p.apache() && slices.Contains([]string{nameCommitLog, nameQueues, nameBatchQueues, nameExtUnits, nameTimerLog}, dir):
		p.add(RiskStart, string(f.Kind), f.File, -1, "the broker takes every file here for one of its own, by size and name: "+f.What, "mqx store repair")
	default:
		p.note(string(f.Kind), f.File, f.What, "")
	}
}

func (p *preflight) queueDamage(f *Finding) {
	if !p.apache() {
		p.note(string(f.Kind), f.File, "mended when the broker starts, as far as the log tells", "mqx store repair")
		return
	}
	p.add(RiskMisuse, string(f.Kind), f.File, f.Messages, f.What, "mqx store repair")
}

// members of entries of topics.json and subscriptionGroup.json that versions know: those of their classes.
var (
	topicMembers49 = []string{"topicName", "readQueueNums", "writeQueueNums", "perm", "topicFilterType", "topicSysFlag", "order"}
	groupMembers49 = []string{
		"groupName", "consumeEnable", "consumeFromMinEnable", "consumeBroadcastEnable", "retryQueueNums", "retryMaxTimes", "brokerId",
		"whichBrokerWhenConsumeSlowly", "notifyConsumerIdsChangedEnable",
	}
	topicMembers5 = append(slices.Clone(topicMembers49), "attributes")
	groupMembers5 = append(slices.Clone(groupMembers49), "consumeMessageOrderly", "groupRetryPolicy", "groupSysFlag", "consumeTimeoutMinute", "subscriptionDataSet", "attributes")
)

// config judges the configuration files.
func (p *preflight) config() error {
	for _, name := range []string{"topics.json", "subscriptionGroup.json", fileOffsets, fileLightOffsets, "delayOffset.json"} {
		j, err := p.d.JSON(name)
		if err != nil {
			return err
		}
		switch {
		case j.Main != nil && j.Main.Err == nil || j.Main == nil && j.Backup == nil:
		case j.Good() != nil:
			p.note("config-file", path.Join(nameConfig, name), "it cannot be read: the broker takes the backup", "")
		default:
			p.add(RiskLoss, "config-file", path.Join(nameConfig, name), -1, "neither it nor its backup can be read", "mqx store repair")
		}
	}
	if err := p.unknownTopics(); err != nil {
		return err
	}
	return p.unknownMembers()
}

// unknownTopics are topics with messages that topics.json does not have: clients cannot read them.
func (p *preflight) unknownTopics() error {
	topics, err := p.d.Topics()
	if err != nil {
		return err
	}
	keys, err := p.d.Queues()
	if err != nil {
		return err
	}
	var unknown []string
	for _, k := range keys {
		_, ok := topics[k.Topic]
		if ok || message.IsSystemTopic(k.Topic) || message.IsLMQ(k.Topic) || message.IsRetry(k.Topic) || message.IsDLQ(k.Topic) || slices.Contains(unknown, k.Topic) {
			continue
		}
		q, err := p.d.Queue(k)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if e, err := q.Ends(p.ctx); err != nil {
			return err
		} else if !e.Empty && !strings.HasSuffix(k.Topic, message.TopicReplySuffix) {
			unknown = append(unknown, k.Topic)
		}
	}
	if len(unknown) > 0 {
		p.add(RiskLoss, "topic-unknown", nameConfig+"/topics.json", -1,
			fmt.Sprintf("%s with messages are not configured, so that clients cannot read them: %s", words.Count(len(unknown), "topic"), firstOf(unknown)), "mqx store rebuild topics")
	}
	return nil
}

func firstOf(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], " ") + " …"
	}
	return strings.Join(names, " ")
}

// unknownMembers are settings of topics and groups that the version drops when it writes the file.
func (p *preflight) unknownMembers() error {
	if !p.apache() {
		return nil
	}
	topic, group := topicMembers5, groupMembers5
	if p.old() {
		topic, group = topicMembers49, groupMembers49
	}
	for _, f := range []struct {
		file, table string
		known       []string
	}{{"topics.json", "topicConfigTable", topic}, {"subscriptionGroup.json", "subscriptionGroupTable", group}} {
		table, err := p.d.table(f.file, f.table)
		if err != nil {
			return err
		}
		var dropped []string
		for _, entry := range table {
			for name, value := range object(entry) {
				if o := object(value); value == nil || o != nil && len(o) == 0 || slices.Contains(f.known, name) || slices.Contains(dropped, name) {
					continue
				}
				dropped = append(dropped, name)
			}
		}
		if slices.Sort(dropped); len(dropped) > 0 {
			p.note("json-members", nameConfig+"/"+f.file, "this version does not know, and drops when it writes the file: "+firstOf(dropped), "")
		}
	}
	if p.old() {
		if m, err := p.d.table("topicQueueMapping.json", "topicQueueMappingInfoMap"); err != nil {
			return err
		} else if len(m) > 0 {
			p.add(RiskMisuse, "static-topics", nameConfig+"/topicQueueMapping.json", -1, fmt.Sprintf("%d static topics: this version does not map their queues", len(m)), "Apache RocketMQ 5")
		}
	}
	return nil
}

// pending judges what waits for its time, or to be acknowledged.
func (p *preflight) pending() error {
	dues, err := p.d.Dues(p.ctx)
	if err != nil {
		return err
	}
	timers, levels := int64(0), int64(0)
	for _, x := range dues {
		switch {
		case x.Cancelled || x.Cancels != "":
		case x.Source == SourceLevel:
			levels++
		default:
			timers++
		}
	}
	if timers > 0 && p.old() {
		p.add(RiskLoss, "timer", nameTimerWheel, timers, fmt.Sprintf("%d timer messages wait: this version has no timer and never delivers them", timers), "Apache RocketMQ 5")
	} else if timers > 0 {
		p.note("timer", nameTimerWheel, fmt.Sprintf("%d timer messages wait, and are delivered when they are due", timers), "")
	}
	if levels > 0 {
		p.note("delay", "", fmt.Sprintf("%d delayed messages wait, and are delivered when they are due", levels), "")
	}
	if err := p.wheel(); err != nil {
		return err
	}
	return p.popped()
}

// wheel judges the files of the timer.
func (p *preflight) wheel() error {
	st, ok, err := p.d.stat(nameTimerWheel)
	if err != nil || !ok || p.old() {
		return err
	}
	if n := int64(timer.WheelBytes); st.Size != n && p.apache() {
		p.add(RiskStart, "timer-wheel", nameTimerWheel, -1, fmt.Sprintf("the wheel has %s, this version makes it with %d", words.Count(st.Size, "byte"), n), "the timerPrecisionMs of the broker that wrote it")
	}
	entries, err := p.d.fs.ReadDir(p.d.root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, pos, ok := strings.Cut(e.Name(), nameTimerWheel+"."); ok && p.o.Target == TargetApache53 {
			if _, err := strconv.ParseInt(pos, 10, 64); err == nil {
				p.note("timer-wheel", e.Name(), "a snapshot of the wheel, which this version does not read", "")
			}
		}
	}
	return nil
}

// popped judges messages that were popped: only versions from 5.0 on give those back that were not acknowledged.
func (p *preflight) popped() error {
	if !p.old() {
		return nil
	}
	keys, err := p.d.Queues()
	if err != nil {
		return err
	}
	n := int64(0)
	for _, k := range keys {
		if !isRevive(k.Topic) {
			continue
		}
		q, err := p.d.Queue(k)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		e, err := q.Ends(p.ctx)
		if err != nil {
			return err
		}
		n += e.Max - e.Min
	}
	if n > 0 {
		p.add(RiskLoss, "pop", "", n, "messages were consumed by pop: this version has no pop, and does not give back those that were not acknowledged", "Apache RocketMQ 5")
	}
	return nil
}
