package timer

import (
	"fmt"
	"math"
	"strconv"

	"mqx/message"
)

// NeverWaited is the TIMER_ENQUEUE_MS of a message that was due when the timer came to it.
const NeverWaited = math.MaxInt64

// Waiting is what a record of the timer topic says about its waiting. The values alias the record.
type Waiting struct {
	Out     int64 // TIMER_OUT_MS
	Topic   []byte
	QueueID int32
	Key     []byte // UNIQ_KEY, nil for none
	Cancels []byte // TIMER_DEL_UNIQKEY: what the message cancels, nil for a message that is to be delivered
	rolls   int    // TIMER_ROLL_TIMES
	marked  bool   // it has properties that are not taken along
}

// ReadWaiting reads a record of the timer topic. An error means that it is not one, or can never be delivered.
func ReadWaiting(rec message.View) (Waiting, error) {
	if string(rec.Topic()) != message.TopicTimer {
		return Waiting{}, fmt.Errorf("the record is of topic %q", rec.Topic())
	}
	w := Waiting{Out: -1, QueueID: -1}
	var err error
	message.EachProperty(rec.Properties(), func(name, value []byte) bool {
		switch string(name) {
		case message.PropTimerOutMs:
			if w.Out, err = strconv.ParseInt(string(value), 10, 64); err != nil || w.Out < 0 {
				err = fmt.Errorf("its %s is %q", name, value)
			}
		case message.PropRealTopic:
			w.Topic = value
		case message.PropRealQueueID:
			var q int64
			if q, err = strconv.ParseInt(string(value), 10, 32); err != nil || q < 0 {
				err = fmt.Errorf("its %s is %q", name, value)
			}
			w.QueueID = int32(q)
		case message.PropUniqKey:
			w.Key = value
		case message.PropTimerDelUniqKey:
			w.Cancels = value
		case message.PropTimerRollTimes:
			w.rolls, _ = strconv.Atoi(string(value)) // a count for people
			w.marked = true
		case message.PropTimerEnqueueMs, message.PropTimerDequeueMs, message.PropCRC32:
			w.marked = true
		}
		return err == nil
	})
	switch {
	case err != nil:
		return Waiting{}, err
	case w.Out < 0 || w.Topic == nil || w.QueueID < 0:
		return Waiting{}, fmt.Errorf("it lacks one of %s, %s and %s", message.PropTimerOutMs, message.PropRealTopic, message.PropRealQueueID)
	}
	switch string(w.Topic) {
	case message.TopicTimer, message.TopicHalf, message.TopicSchedule:
		return Waiting{}, fmt.Errorf("its %s is %s, where nothing is delivered to", message.PropRealTopic, w.Topic)
	}
	return w, nil
}

// Kept is the message as recovery needs it. It has memory of its own.
func (w *Waiting) Kept(phys int64, size int32) Kept {
	return Kept{Key: string(w.Key), Rolls: w.rolls, Item: Item{
		Phys: phys, Size: size, Out: w.Out, Topic: string(w.Topic), TopicHash: message.JavaHash(w.Topic), Delete: w.Cancels != nil,
	}}
}

// Fits reports whether a unit can be the record's. After the commit log was cut and written anew, a unit may point to
// another message, which must not come out early.
func (w *Waiting) Fits(u *Unit, r Rules) bool {
	return u.Rolls() || u.Time() >= r.Floor(w.Out)
}

// DeleteKey is what a message is cancelled by: its unique key, with its topic before it where the broker is so configured
// (appendTopicForTimerDeleteKey).
func DeleteKey(topic, key string, withTopic bool) string {
	if withTopic {
		return topic + "+" + key
	}
	return key
}

// Deliver turns the record of a waiting message into the one to be stored: its own topic and queue, or the timer topic
// again when it rolls. Its properties are kept, those that say where it was to go included, with the time it was put into
// the wheel (enqueueMs) and taken out; they are appended to dst, which is returned with them. Body and topic alias rec.
// marks false leaves the times out, for a message that has no room for them.
func (w *Waiting) Deliver(rec message.View, roll bool, enqueueMs, nowMs int64, marks bool, dst []byte) (message.Record, []byte) {
	start := len(dst)
	props := rec.Properties()
	if w.marked {
		message.EachProperty(props, func(name, value []byte) bool {
			switch string(name) {
			case message.PropTimerEnqueueMs, message.PropTimerDequeueMs, message.PropCRC32:
				return true
			case message.PropTimerRollTimes:
				if roll {
					return true
				}
			}
			dst = appendText(dst, string(name), value)
			return true
		})
	} else {
		dst = append(dst, props...)
		if n := len(dst); n > start && dst[n-1] != message.PropertySeparator {
			dst = append(dst, message.PropertySeparator)
		}
	}
	if marks {
		dst = appendInt(dst, message.PropTimerEnqueueMs, enqueueMs)
		if roll {
			dst = appendInt(dst, message.PropTimerRollTimes, int64(w.rolls)+1)
		}
		dst = appendInt(dst, message.PropTimerDequeueMs, nowMs)
	}
	out := message.Record{
		QueueID: w.QueueID, Flag: rec.Flag(), SysFlag: rec.SysFlag(),
		BornTimestamp: rec.BornTimestamp(), BornHost: rec.BornHost(), StoreHost: rec.StoreHost(),
		ReconsumeTimes: rec.ReconsumeTimes(), Body: rec.Body(), Topic: w.Topic, Properties: dst[start:len(dst):len(dst)],
	}
	if roll {
		out.Topic, out.QueueID = rec.Topic(), rec.QueueID()
	}
	return out, dst
}

func appendText(dst []byte, name string, value []byte) []byte {
	dst = append(append(dst, name...), message.NameValueSeparator)
	return append(append(dst, value...), message.PropertySeparator)
}

func appendInt(dst []byte, name string, value int64) []byte {
	dst = append(append(dst, name...), message.NameValueSeparator)
	return append(strconv.AppendInt(dst, value, 10), message.PropertySeparator)
}
