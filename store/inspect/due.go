package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/store/timer"
)

// Source says where a message waits for its time.
type Source string

// Sources.
const (
	SourceWheel Source = "wheel" // in the timer wheel
	SourceTimer Source = "queue" // in the timer topic, not yet taken up by the wheel
	SourceLevel Source = "level" // in the queue of a delay level
)

// Due is one message that waits.
type Due struct {
	Time      int64 // ms
	Source    Source
	Level     int32 // delay level, 0 for none
	Topic     string
	Queue     int32
	UniqKey   string
	Phys      int64
	Rolls     bool // the wheel does not reach its time: it comes round once more
	Cancels   string
	Cancelled bool
	Lost      bool // its record cannot be read any more
}

// Dues lists what waits, the next first. Its memory grows with their number.
func (d *Dir) Dues(ctx context.Context) ([]Due, error) {
	var out []Due
	v, err := d.TimerView()
	if err != nil {
		return nil, err
	}
	if out, err = d.wheelDues(ctx, v, out); err != nil {
		return nil, err
	}
	if out, err = d.queueDues(ctx, v, out); err != nil {
		return nil, err
	}
	if out, err = d.levelDues(ctx, out); err != nil {
		return nil, err
	}
	sorted.Stably(out, func(a, b Due) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Phys, b.Phys)) })
	return out, nil
}

// wheelDues are the messages of the slots that have not been passed.
func (d *Dir) wheelDues(ctx context.Context, v *timer.View, out []Due) ([]Due, error) {
	for _, w := range v.Wheels {
		if w.Flushed >= 0 {
			continue // a snapshot is an older wheel
		}
		var failed error
		err := v.Slots(w, func(index int, s timer.Slot) bool {
			at := s.Tick * v.PrecisionMs
			if s.Num <= 0 && s.Last < 0 || index != timer.SlotIndex(s.Tick) || at < v.Checkpoint.ReadTime {
				return true
			}
			out, failed = d.slotDues(v, s, at, out)
			if failed == nil {
				failed = ctx.Err()
			}
			return failed == nil
		})
		if err := errors.Join(err, failed); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *Dir) slotDues(v *timer.View, s timer.Slot, at int64, out []Due) ([]Due, error) {
	from := len(out)
	cancelled := map[string]bool{}
	var failed error
	err := v.Chain(s, func(_ int64, u timer.Unit) bool {
		x := Due{Time: at, Source: SourceWheel, Phys: u.Phys, Rolls: u.Rolls()}
		if failed = d.describe(&x); failed != nil {
			return false
		}
		if x.Cancels != "" && !u.Cancels() {
			x.Cancels = ""
		}
		if x.Cancels != "" {
			cancelled[x.Cancels] = true
		}
		out = append(out, x)
		return true
	})
	if _, broken := errors.AsType[*timer.UnitError](err); broken {
		err = nil // verify says so; what is behind the break cannot be found
	}
	for i := range out[from:] {
		x := &out[from+i]
		x.Cancelled = x.Cancels == "" && x.UniqKey != "" && (cancelled[x.UniqKey] || cancelled[x.Topic+x.UniqKey])
	}
	return out, errors.Join(err, failed)
}

// describe reads what the record of a message that waits says of it.
func (d *Dir) describe(x *Due) error {
	rec, err := d.log.Record(x.Phys)
	switch {
	case errors.Is(err, ErrNoRecord), errors.Is(err, fs.ErrNotExist), errors.Is(err, io.ErrUnexpectedEOF):
		x.Lost = true
		return nil
	case err != nil:
		return err
	}
	text := func(name string) string { b, _ := rec.Property(name); return string(b) }
	x.Topic, x.UniqKey, x.Cancels = text(message.PropRealTopic), text(message.PropUniqKey), text(message.PropTimerDelUniqKey)
	if n, err := strconv.ParseInt(text(message.PropRealQueueID), 10, 32); err == nil {
		x.Queue = int32(n)
	}
	if out, err := strconv.ParseInt(text(message.PropTimerOutMs), 10, 64); err == nil && x.Time == 0 {
		x.Time = out
	}
	return nil
}

// queueDues are the messages of the timer topic that the wheel has not taken up.
func (d *Dir) queueDues(ctx context.Context, v *timer.View, out []Due) ([]Due, error) {
	return d.dues(ctx, "rmq_sys_wheel_timer", 0, v.Checkpoint.QueueOffset, out, func(Unit) Due { return Due{Source: SourceTimer} })
}

// levelDues are the messages of the delay levels that have not been delivered.
func (d *Dir) levelDues(ctx context.Context, out []Due) ([]Due, error) {
	progress, err := d.DelayOffsets()
	if err != nil {
		return nil, err
	}
	next := map[int32]int64{}
	for _, p := range progress {
		next[p.Level] = p.Offset
	}
	keys, err := d.Queues()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if k.Topic != "SCHEDULE_TOPIC_XXXX" || k.Batch {
			continue
		}
		level := k.ID + 1
		out, err = d.dues(ctx, k.Topic, k.ID, next[level], out, func(u Unit) Due {
			return Due{Time: u.TagsCode, Source: SourceLevel, Level: level}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// dues are the messages of a queue from an offset on.
func (d *Dir) dues(ctx context.Context, topic string, id int32, from int64, out []Due, of func(Unit) Due) ([]Due, error) {
	q, err := d.Queue(QueueKey{Topic: topic, ID: id})
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	err = q.Units(ctx, from, noLimit, func(u Unit) error {
		if !u.Written() || u.Filler() {
			return nil
		}
		x := of(u)
		x.Phys = u.Phys
		if err := d.describe(&x); err != nil {
			return err
		}
		out = append(out, x)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list what waits: %w", err)
	}
	return out, nil
}

// TimerView is the timer's part of the directory. What lies in the place of one of its files and is none counts as missing.
func (d *Dir) TimerView() (*timer.View, error) { return timer.OpenView(plainFS{d.fs}, d.root) }
