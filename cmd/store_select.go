package cmd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mqx/client"
	"mqx/store/inspect"
)

// storeRange is what selectFlags come to: which records, and where in the log they can be.
type storeRange struct {
	match inspect.Match
	scan  inspect.ScanOptions
	atEnd bool // start is the end of the log
}

// resolve reads the flags against a store.
func (s *selectFlags) resolve(ctx context.Context, a *app, c *cobra.Command, d *inspect.Dir) (storeRange, error) {
	r := storeRange{match: inspect.Match{Topic: s.topic, Tag: s.tag, Key: s.key, ID: s.id, Body: s.body, Queue: s.queue, HasQueue: c.Flags().Changed("queue")}}
	if r.match.HasQueue && s.topic == "" {
		return r, usagef("cannot use --queue without --topic: queues are those of a topic").try("-t TOPIC -q %d", s.queue)
	}
	if s.queue < 0 {
		return r, usagef("cannot use --queue %d: queues are numbered from 0", s.queue).try("-q 0")
	}
	if err := s.empty(c); err != nil {
		return r, err
	}
	var err error
	if r.match.Where, err = compileWhere(s.where); err != nil {
		return r, err
	}
	now := time.Now()
	start, err := storePosition(s.start, client.Position{Kind: client.AtStart}, now)
	if err != nil {
		return r, err
	}
	end, err := storePosition(s.end, client.Position{Kind: client.AtEnd}, now)
	if err != nil {
		return r, err
	}
	if err := r.from(ctx, d, start); err != nil {
		return r, err
	}
	if err := r.to(ctx, d, end); err != nil {
		return r, err
	}
	a.note("records from %s to %s%s", showPosition(start), showPosition(end), s.said())
	return r, nil
}

// empty refuses a condition that is given and says nothing: most likely a variable of a script that is not set, and then
// everything would be taken.
func (s *selectFlags) empty(c *cobra.Command) error {
	for _, x := range []struct{ name, value string }{
		{"topic", s.topic}, {"tag", s.tag}, {"key", s.key}, {"id", s.id}, {"body-text", s.body}, {"where", s.where}, {"start", s.start}, {"end", s.end},
	} {
		if f := c.Flags().Lookup(x.name); f != nil && f.Changed && x.value == "" && f.Value.Type() == "string" {
			return usagef("cannot use --%s '': it is empty", x.name).because("everything would be taken").try("leave --%s out for everything", x.name)
		}
	}
	return nil
}

// known refuses a topic, or a queue of one, of which nothing is known, when no record was found that is of it. The
// configuration and the queues are asked; the log was read.
func (s *selectFlags) known(dir string, d *inspect.Dir) error {
	if s.topic == "" {
		return nil
	}
	names, err := d.TopicNames()
	if err != nil {
		return nil //nolint:nilerr // the log alone says it
	}
	if !slices.Contains(names, s.topic) {
		return notFoundIn(dir, "topic", s.topic, names)
	}
	return nil
}

func storePosition(text string, none client.Position, now time.Time) (client.Position, error) {
	if text == "" {
		return none, nil
	}
	return parsePosition(text, now)
}

// maxSaid is how much of a condition is said again.
const maxSaid = 200

// said is the conditions, as they were understood.
func (s *selectFlags) said() string {
	var b strings.Builder
	for _, x := range []struct{ name, value string }{
		{"topic", s.topic},
		{"tag", s.tag},
		{"key", s.key},
		{"id", s.id},
		{"text", s.body},
		{"where", s.where},
	} {
		if x.value != "" {
			v := []rune(x.value)
			if len(v) > maxSaid {
				v = append(v[:maxSaid:maxSaid], '…')
			}
			fmt.Fprintf(&b, ", %s %s", x.name, string(v))
		}
	}
	return b.String()
}

// inQueue: positions are offsets of one queue.
func (r *storeRange) inQueue() bool { return r.match.HasQueue }

func (r *storeRange) from(ctx context.Context, d *inspect.Dir, p client.Position) (err error) {
	switch p.Kind {
	case client.AtStart:
	case client.AtEnd:
		r.atEnd = true
		r.scan.From, err = storeEnd(ctx, d)
	case client.AtTime:
		r.match.Start = p.Time.UnixMilli()
		r.scan.From, err = d.Log().SeekTime(r.match.Start)
	case client.AtOffset:
		if !r.inQueue() {
			r.scan.From = p.Offset
			return nil
		}
		r.match.HasOffsets, r.match.FromOffset, r.match.ToOffset = true, p.Offset, math.MaxInt64
		r.scan.From, err = unitPhys(ctx, d, r.match, p.Offset)
	}
	return err
}

func (r *storeRange) to(ctx context.Context, d *inspect.Dir, p client.Position) (err error) {
	switch p.Kind {
	case client.AtStart:
		r.scan.To = max(d.Log().Min(), 1)
	case client.AtEnd:
	case client.AtTime:
		r.match.End = p.Time.UnixMilli()
		r.scan.To, err = d.Log().EndTime(r.match.End)
	case client.AtOffset:
		if !r.inQueue() {
			r.scan.To = max(p.Offset, 1)
			return nil
		}
		r.match.HasOffsets, r.match.ToOffset = true, p.Offset
		r.scan.To, err = unitPhys(ctx, d, r.match, p.Offset)
	}
	return err
}

// unitPhys is the position of the record at a queue offset, 0 when its queue does not tell.
func unitPhys(ctx context.Context, d *inspect.Dir, m inspect.Match, offset int64) (int64, error) {
	keys, err := d.Queues()
	if err != nil {
		return 0, err
	}
	for _, k := range keys {
		if k.Topic != m.Topic || k.ID != m.Queue {
			continue
		}
		q, err := d.Queue(k)
		if err != nil {
			return 0, err
		}
		u, ok, err := q.At(ctx, offset)
		if err != nil || !ok {
			return 0, err
		}
		if _, err := d.Log().Record(u.Phys); err == nil {
			return u.Phys, nil
		}
	}
	return 0, nil
}

// storeEnd is the position behind the last record of the log.
func storeEnd(ctx context.Context, d *inspect.Dir) (int64, error) {
	t, err := d.Log().Tail(ctx, 0)
	return t.Offset, err
}
