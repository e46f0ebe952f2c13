package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// A broker notes each pop of a queue: which messages it handed out, and until when they are
// invisible. The note is a timer message. It lies in the timer topic for nearly all that time, then
// in the revive topic, until the broker has put what was not acknowledged into the retry topic of
// the group, or forgets it: also where the topic is gone by then. So both topics are read.

// popHorizon is how far back notes are looked for: no client makes messages invisible for longer.
// (The proxy's limit; the Java client's longest is two hours.)
const popHorizon = 12 * time.Hour

// popSlack is how long after its time a note may still be on its way from the timer to the revive
// topic, beside what the broker itself says of its lag.
const popSlack = 5 * time.Second

const (
	popGroup = message.SystemGroupPrefix + "REVIVE_GROUP"
	popTag   = "ck" // of a note that opens; others close one
)

// popNote is a note of a pop, of a topic that somebody asks about.
type popNote struct {
	topic, group string
	queue        int32 // -1: popped from a retry topic
	messages     int64
	due          int64 // ms, when it goes from the timer to the revive topic
	offset       int64 // where it lies
}

// noteLog is how far a topic with notes was read, and those in it that are not settled.
type noteLog struct {
	begun bool
	next  int64
	open  []popNote
}

// popLook is what is known of the notes of one broker; it is read on with each look.
type popLook struct {
	mu sync.Mutex
	at struct {
		timer  noteLog
		revive map[int32]*noteLog
	}
}

// popLooks are the looks of a client: a plan that is watched need not read everything again.
type popLooks struct {
	mu sync.Mutex
	of map[string]*popLook // by plan and broker
}

func (p *popLooks) get(plan, broker string) *popLook {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]*popLook{}
	}
	k := plan + "\x00" + broker
	if p.of[k] == nil {
		p.of[k] = &popLook{}
	}
	return p.of[k]
}

// popsOpen are the notes of pops of some topics that a broker has not settled; unread is how many
// records are still to be read before that is known, 0 when it is.
func (c *Client) popsOpen(ctx context.Context, l *popLook, b Broker, offsets *offsetTable, cluster string, topics map[string]bool) (open []popNote, unread int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	budget := maxLeftovers
	timer := &l.at.timer
	if unread, err = c.readTimerNotes(ctx, timer, b, topics, &budget); err != nil {
		return nil, 0, err
	}
	if len(timer.open) > 0 {
		info, err := c.RuntimeInfo(ctx, b.Addr)
		if err != nil {
			return nil, 0, err
		}
		at, err := timerState(info)
		if err != nil {
			return nil, 0, err
		}
		timer.drop(timer.next+unread, &at)
	}
	open = slices.Clone(timer.open)
	topic := message.TopicReviveLogPrefix + cluster
	ranges, err := c.rangesOn(ctx, b, topic)
	if err != nil {
		return nil, 0, err
	}
	if l.at.revive == nil {
		l.at.revive = map[int32]*noteLog{}
	}
	for queue, r := range ranges {
		log := l.at.revive[queue]
		if log == nil {
			log = &noteLog{}
			l.at.revive[queue] = log
		}
		settled, ok := offsets.committed[offsetKey(topic, popGroup)][queue]
		if !ok {
			settled = r.Min - 1
		}
		if !log.begun || log.next > r.Max {
			*log = noteLog{begun: true, next: max(r.Min, settled+1)}
		}
		if err := c.readNotes(ctx, log, b, topic, queue, r.Max, topics, &budget); err != nil {
			return nil, 0, err
		}
		log.open = slices.DeleteFunc(log.open, func(n popNote) bool { return n.offset <= settled })
		open = append(open, log.open...)
		unread += r.Max - log.next
	}
	return open, unread, nil
}

// readTimerNotes reads the timer topic on, from as long ago as anything can still be in it.
func (c *Client) readTimerNotes(ctx context.Context, log *noteLog, b Broker, topics map[string]bool, budget *int) (unread int64, err error) {
	ranges, err := c.rangesOn(ctx, b, message.TopicTimer)
	if err != nil || len(ranges) == 0 {
		return 0, err
	}
	r := ranges[0]
	if !log.begun || log.next > r.Max {
		from, err := c.offsetAt(ctx, b, remoting.MessageQueue{Topic: message.TopicTimer}, time.Now().Add(-popHorizon))
		if err != nil {
			return 0, err
		}
		*log = noteLog{begun: true, next: min(max(from, r.Min), r.Max)}
	}
	if err := c.readNotes(ctx, log, b, message.TopicTimer, 0, r.Max, topics, budget); err != nil {
		return 0, err
	}
	return r.Max - log.next, nil
}

// readNotes reads a queue with notes on, up to an offset or as far as the budget goes.
func (c *Client) readNotes(ctx context.Context, log *noteLog, b Broker, topic string, queue int32, to int64, topics map[string]bool, budget *int) error {
	for log.next < to && *budget > 0 {
		ms, next, err := c.pullTagged(ctx, b, topic, queue, log.next, popTag)
		if err != nil {
			return err
		}
		*budget -= max(1, len(ms))
		for i := range ms {
			if n, ok := noteOf(&ms[i], topics); ok {
				log.open = append(log.open, n)
			}
		}
		if next <= log.next { // stored, and not yet in the queue
			return nil
		}
		log.next = next
	}
	return nil
}

// noteOf reads a note, where it is one of a pop of these topics or of a retry topic of theirs.
func noteOf(m *message.Received, topics map[string]bool) (popNote, bool) {
	if m.Tags() != popTag {
		return popNote{}, false
	}
	var ck struct {
		Group string `json:"c"`
		Topic string `json:"t"`
		Queue int32  `json:"q"`
		Num   int64  `json:"n"`
	}
	if err := fastjson.Unmarshal(m.Body, &ck); err != nil {
		return popNote{}, false // the broker cannot read it either
	}
	n := popNote{group: ck.Group, topic: ck.Topic, queue: ck.Queue, messages: ck.Num, offset: m.QueueOffset}
	if due, err := strconv.ParseInt(m.Property(message.PropTimerOutMs), 10, 64); err == nil {
		n.due = due
	}
	if topics[n.topic] {
		return n, true
	}
	// %RETRY%GROUP_TOPIC or %RETRY%GROUP+TOPIC
	if rest, ok := strings.CutPrefix(n.topic, message.RetryTopicPrefix+n.group); ok && len(rest) > 1 && topics[rest[1:]] {
		n.topic, n.queue = rest[1:], -1
		return n, true
	}
	return popNote{}, false
}

// drop forgets notes that have gone from the timer to the revive topic; end is that of the timer's topic, asked for before the state.
// A note that the timer has not taken up yet goes there when it is, however long ago it was due.
func (l *noteLog) drop(end int64, at *timerAt) {
	for i := range l.open {
		if n := &l.open[i]; n.offset >= end-at.behind {
			n.due = max(n.due, at.now)
		}
	}
	l.open = slices.DeleteFunc(l.open, func(n popNote) bool { return n.due < at.passed })
}

// timerAt is how far the timer of a broker is, in ms of the broker's clock.
type timerAt struct {
	now    int64
	passed int64 // nothing that was taken up and was due before is left in it
	behind int64 // messages of its topic that it has not taken up
}

func timerState(info map[string]string) (timerAt, error) {
	boot, bootErr := strconv.ParseInt(info["bootTimestamp"], 10, 64)
	age, ageErr := parseRuntime(info["runtime"])
	late, lateErr := strconv.ParseInt(info["timerReadBehind"], 10, 64) // seconds
	behind, behindErr := strconv.ParseInt(info["timerOffsetBehind"], 10, 64)
	if err := errors.Join(bootErr, ageErr, lateErr, behindErr); err != nil {
		return timerAt{}, fmt.Errorf("the broker does not tell its time, or how far its timer is: %w", err)
	}
	now := boot + age.Milliseconds()
	return timerAt{now: now, passed: now - (time.Duration(late)*time.Second + popSlack).Milliseconds(), behind: behind}, nil
}
