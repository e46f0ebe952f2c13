package broker

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"mqx/broker/delay"
	"mqx/message"
	"mqx/remoting"
)

// divert turns a message that asks to be delivered later towards the topic
// where it waits: SCHEDULE_TOPIC_XXXX for DELAY, rmq_sys_wheel_timer for the
// TIMER properties. It is the one place for that; Apache does it in a hook
// before every put, so it holds for what is sent, sent back and committed. A
// prepared or rolled back message of a transaction is never delayed. With both
// kinds of properties the level wins and the timer properties go.
//
// It changes Topic, QueueID and Properties of rec, which get new memory. When
// it returns an error, the message is to be refused with it; rec may have lost
// properties then.
func (b *Broker) divert(rec *message.Record, now time.Time) *refusedError {
	switch message.Transaction(rec.SysFlag) {
	case message.TransactionPrepared, message.TransactionRollback:
		return nil
	}
	level, err := delay.LevelIn(rec.Properties)
	if err != nil {
		return refuse(remoting.RespMessageIllegal, "%v; nothing was stored", err)
	}
	if level <= 0 {
		return b.divertTimer(rec, now)
	}
	props := rec.Properties
	for _, name := range [...]string{message.PropTimerDeliverMs, message.PropTimerDelaySec, message.PropTimerDelayMs} {
		props = message.DeleteProperty(props, name)
	}
	if most := b.delayLevels.Cap(level); most != level {
		level = most
		props = message.SetProperty(props, message.PropDelay, strconv.Itoa(level))
	}
	rec.Properties = parkedFor(props, rec)
	rec.Topic, rec.QueueID = scheduleTopic, delay.QueueOf(level)
	return nil
}

var scheduleTopic = []byte(message.TopicSchedule)

// parkedFor are the properties of a message that waits elsewhere: where it is
// to go stands in REAL_TOPIC and REAL_QID.
func parkedFor(props []byte, rec *message.Record) []byte {
	props = message.SetProperty(props, message.PropRealTopic, string(rec.Topic))
	return message.SetProperty(props, message.PropRealQueueID, strconv.Itoa(int(rec.QueueID)))
}

// divertTimer is divert for the TIMER properties: of several the first of
// TIMER_DELAY_SEC, TIMER_DELAY_MS and TIMER_DELIVER_MS counts. A time that has
// passed is none. What has waited already, which TIMER_OUT_MS tells, goes on.
func (b *Broker) divertTimer(rec *message.Record, now time.Time) *refusedError {
	props := rec.Properties
	if _, out := message.Property(props, message.PropTimerOutMs); out || string(rec.Topic) == message.TopicTimer {
		return nil
	}
	deliver, asked, err := deliverTime(props, now.UnixMilli())
	if !asked {
		return nil
	}
	conf := &b.cfg().Timers
	if !b.timers.on() {
		return refuse(remoting.RespSystemError, "accurate timer message is not enabled, timerWheelEnable is false")
	}
	if left := deliver - now.UnixMilli(); err != nil || left > conf.TimerMaxDelay.Milliseconds() {
		return illegalTimer(conf)
	} else if left <= 0 {
		if _, cancels := message.Property(props, message.PropTimerDelUniqKey); cancels {
			return illegalTimer(conf)
		}
		return nil
	}
	out := b.timers.t.Rules().OutTime(deliver)
	if most := int64(conf.TimerCongest); most < math.MaxInt32 && b.timers.t.Rejects(out, most) {
		return refuse(remoting.RespSystemError, "timer message is under flow control, max num limit is %d or the current value is greater than %d and less than %d, trigger random flow control",
			2*most, most, 2*most)
	}
	props = message.SetProperty(props, message.PropTimerOutMs, strconv.FormatInt(out, 10))
	rec.Properties = parkedFor(props, rec)
	rec.Topic, rec.QueueID = timerTopic, 0
	return nil
}

var timerTopic = []byte(message.TopicTimer)

func illegalTimer(conf *Timers) *refusedError {
	return refuse(remoting.RespMessageIllegal, "timer message illegal, the delay time should not be bigger than the max delay %dms; or if set del msg, the delay time should be bigger than the current time",
		conf.TimerMaxDelay.Milliseconds())
}

// deliverTime is the time at which the properties ask for delivery, in ms; asked
// is false when they do not.
func deliverTime(props []byte, nowMs int64) (deliver int64, asked bool, err error) {
	for _, p := range [...]struct {
		name     string
		from, ms int64
	}{
		{message.PropTimerDelaySec, nowMs, 1000}, {message.PropTimerDelayMs, nowMs, 1}, {message.PropTimerDeliverMs, 0, 1},
	} {
		text, ok := message.Property(props, p.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || n > math.MaxInt64/p.ms/2 || n < math.MinInt64/p.ms/2 {
			return 0, true, fmt.Errorf("%s is %q", p.name, text)
		}
		return p.from + n*p.ms, true, nil
	}
	return 0, false, nil
}
