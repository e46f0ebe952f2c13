package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"mqx/message"
)

// How says in which way a record was found.
type How string

// Ways.
const (
	ByOffset How = "offset" // its id or position says where it is
	ByIndex  How = "index"  // by the key index
	ByScan   How = "scan"   // by looking at the log
)

// Plan is how a key would be looked for.
type Plan struct {
	Index bool  // the index is of use for the part of the log from From to To
	From  int64 // records before it have to be scanned
	To    int64 // records from it on have to be scanned
	Why   string
}

// KeyPlan tells what part of the log the key index covers. It trusts that a record between the first and the last one
// that the index knows has its entries.
func (d *Dir) KeyPlan(files []*IndexFile) Plan {
	p := Plan{From: -1, Why: "the store has no key index"}
	for _, x := range files {
		switch {
		case x.Err != nil:
			return Plan{Why: fmt.Sprintf("index file %s is damaged: %v", x.Name, x.Err)}
		case x.Head.Count <= 1:
			continue
		case p.From >= 0 && x.Head.BeginPhys < p.From:
			return Plan{Why: fmt.Sprintf("index file %s begins before the one that is older", x.Name)}
		}
		if p.From < 0 {
			p.From = x.Head.BeginPhys
		}
		p.Index, p.To, p.Why = true, x.Head.EndPhys, ""
	}
	return p
}

// ByKey finds the records of a topic whose keys, unique id or (with tags) whole tag text is the one asked for, by the
// index alone, newest first. Each is compared with its key: what only shares the hash is left out.
func (d *Dir) ByKey(files []*IndexFile, topic, key string, m Match, f func(message.View) error) error {
	hash := KeyHash(topic + "#" + key)
	m.Topic, m.Key = topic, key
	want := m.Func()
	seen := map[int64]bool{}
	for _, x := range slices.Backward(files) {
		err := x.Lookup(hash, func(e IndexEntry) error {
			if seen[e.Phys] {
				return nil
			}
			seen[e.Phys] = true
			v, err := d.log.Record(e.Phys)
			switch {
			case errors.Is(err, ErrNoRecord), errors.Is(err, fs.ErrNotExist), errors.Is(err, io.ErrUnexpectedEOF):
				return nil // expired, or damaged: verify says so
			case err != nil:
				return err
			case !want(v):
				return nil
			}
			return f(v)
		})
		if err != nil {
			if errors.Is(err, ErrStop) {
				return nil
			}
			return err
		}
	}
	return nil
}

// TopicNames are the topics that have queues or a configuration, sorted.
func (d *Dir) TopicNames() ([]string, error) {
	keys, err := d.Queues()
	if err != nil {
		return nil, err
	}
	topics, err := d.Topics()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.Topic)
	}
	for name := range topics {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Find looks for the records with a key: by the index where it covers the log, by a scan for the rest of it. topic may be
// empty: all topics then. Records come in the order of the log, each once, with the way they were found. Any other
// condition of m has to hold as well.
func (d *Dir) Find(ctx context.Context, m Match, o ScanOptions, f func(v message.View, how How) error) (Plan, error) {
	files, err := d.Index()
	if err != nil {
		return Plan{}, err
	}
	p := d.KeyPlan(files)
	if m.Key == "" {
		p = Plan{Why: "the index knows keys only"}
	}
	found := &finding{d: d, ctx: ctx, m: m, o: o, f: f, last: -1}
	if !p.Index {
		return p, found.scan(0, noLimit)
	}
	if p.From > d.log.Min() {
		if err := found.scan(0, p.From); err != nil {
			return p, err
		}
	}
	if err := found.index(files, p); err != nil {
		return p, err
	}
	return p, found.tail(p.To) // the keys of the record at To may not all be in the index
}

// tailSearch is how far behind the last record that can be read one is looked for: twice what a record can have.
const tailSearch = 8 << 20

// tail looks at what the index does not have yet, which is little: one goroutine, and no search of the whole rest of the
// file, which is zeros.
func (x *finding) tail(from int64) error {
	o := x.o
	from = max(from, o.From)
	if x.stopped || (o.To > 0 && from >= o.To) {
		return nil
	}
	from, err := x.d.log.Align(x.ctx, from)
	if err != nil {
		return err
	}
	want := x.m.Func()
	w := WalkOptions{From: from, To: o.To, SearchBehind: tailSearch, OnRead: o.OnRead, OnBreak: func(b Break) error {
		if b.Record = nil; o.OnBreak == nil {
			return nil
		}
		return o.OnBreak(b)
	}}
	_, err = x.d.log.Walk(x.ctx, w, func(off int64, v message.View) error {
		if off == x.last || !want(v) {
			return nil
		}
		return x.give(v, ByScan)
	})
	return err
}

// finding is one Find.
type finding struct {
	d       *Dir
	ctx     context.Context //nolint:containedctx // of one call of Find
	m       Match
	o       ScanOptions
	f       func(message.View, How) error
	last    int64 // the last record that the index gave, -1 for none
	stopped bool
}

func (x *finding) give(v message.View, how How) error {
	err := x.f(v, how)
	x.stopped = errors.Is(err, ErrStop)
	return err
}

func (x *finding) scan(from, to int64) error {
	o := x.o
	o.From = max(o.From, from)
	if o.To <= 0 || to < o.To {
		o.To = to
	}
	if x.stopped || o.From >= o.To {
		return nil
	}
	_, err := x.d.log.Scan(x.ctx, o, x.m.Func(), func(off int64, v message.View) error {
		if off == x.last {
			return nil
		}
		return x.give(v, ByScan)
	})
	return err
}

func (x *finding) index(files []*IndexFile, p Plan) error {
	topics := []string{x.m.Topic}
	if x.m.Topic == "" {
		var err error
		if topics, err = x.d.TopicNames(); err != nil {
			return err
		}
	}
	var offs []int64
	for _, topic := range topics {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		err := x.d.ByKey(files, topic, x.m.Key, x.m, func(v message.View) error {
			if off := v.PhysicalOffset(); off <= p.To && off >= x.o.From && (x.o.To <= 0 || off < x.o.To) {
				offs = append(offs, off)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(offs)
	for _, off := range offs {
		v, err := x.d.log.Record(off)
		if err == nil {
			err = x.give(v, ByIndex)
		}
		if errors.Is(err, ErrStop) {
			return nil
		}
		if err != nil {
			return err
		}
		x.last = off
	}
	return nil
}
