package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Most changes set or take away things that servers keep by name: the configuration
// of a group, a key of a configuration, a user. A cell is one such thing at one
// server; a cellPlan is a change of cells. What a kind of thing is, how it is read
// and written, says its cellKind; planning, saving, comparing, doing, reading back
// and undoing are the same for all of them.

// cellKind is a kind of thing. T is its state, with a JSON form that loses nothing.
type cellKind[T any] struct {
	kind string // of the plan: its key in planKinds
	what string // in words, for errors: "group"
	// read reads the states of parts at a server. What is not there is not in the map.
	read func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]T, error)
	// write makes a part what it is to be; is nil takes it away.
	write func(ctx context.Context, c *Client, w cellWrite[T]) error
	// same reports whether two states are one; nil compares everything.
	same func(a, b T) bool
	// show is a state as a step shows it: a text, a number, or a value with a String
	// method; nil shows it itself.
	show func(v T) any
	// final is why the change of a cell cannot be taken back; nil when it can, as when
	// the function is nil.
	final func(was, is *T) error
	// warn is what to mind of the change of a cell, "" for nothing.
	warn func(part string, was, is *T) string
	// lost tells what a change would lose that nobody has read: such a plan asks for the
	// name. May be nil. A server that cannot tell is an error of its own.
	lost func(ctx context.Context, c *Client, cells []cell[T]) ([]Note, []TargetError)
	// hide returns what is shown of a state that is a secret, and whether it is one: it
	// is written down nowhere, so that its change cannot be taken back. May be nil.
	hide func(part string, v T) (T, bool)
	// carry keeps of a written state what a read one does not tell; may be nil.
	carry func(from, to *T)
	// settle does what is left when all cells are written; may be nil.
	settle func(ctx context.Context, c *Client, p *cellPlan[T], done []cell[T]) []TargetError
}

// cellWrite is one cell to be written.
type cellWrite[T any] struct {
	At      Broker
	Part    string
	Was, Is *T
	Options json.RawMessage // of the plan
}

// cell is one thing at one server.
type cell[T any] struct {
	at      Broker
	part    string
	was, is *T
}

func (k *cellKind[T]) equal(a, b *T) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case k.same != nil:
		return k.same(*a, *b)
	}
	return reflect.DeepEqual(*a, *b)
}

func (k *cellKind[T]) action(x cell[T]) string {
	switch {
	case k.equal(x.was, x.is):
		return ActionNone
	case x.was == nil:
		return ActionCreate
	case x.is == nil:
		return ActionDelete
	}
	return ActionUpdate
}

func (k *cellKind[T]) view(v *T) any {
	switch {
	case v == nil:
		return nil
	case k.show != nil:
		return k.show(*v)
	}
	return any(*v)
}

// text is a state in words.
func (k *cellKind[T]) text(v *T) string {
	if v == nil {
		return "not there"
	}
	return fmt.Sprint(k.view(v))
}

// shown is what may be shown of a state, and whether that is less than all of it.
func (k *cellKind[T]) shown(part string, v *T) (*T, bool) {
	if k.hide == nil || v == nil {
		return v, false
	}
	s, secret := k.hide(part, *v)
	return &s, secret
}

// secret reports whether one of the states of a cell is to be written down nowhere.
func (k *cellKind[T]) secret(x cell[T]) bool {
	_, was := k.shown(x.part, x.was)
	_, is := k.shown(x.part, x.is)
	return was || is
}

// secretParts are the parts of cells that have a secret state, sorted.
func (k *cellKind[T]) secretParts(cells []cell[T]) []string {
	var out []string
	for _, x := range cells {
		if k.secret(x) {
			out = append(out, x.part)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// textOf is text, without what is secret.
func (k *cellKind[T]) textOf(part string, v *T) string {
	v, _ = k.shown(part, v)
	return k.text(v)
}

func (k *cellKind[T]) step(x cell[T], object string) Step {
	was, _ := k.shown(x.part, x.was)
	is, _ := k.shown(x.part, x.is)
	s := Step{Broker: x.at.Name, Addr: x.at.Addr, Action: k.action(x), Before: k.view(was), After: k.view(is)}
	if x.part != object {
		s.Part = x.part
	}
	if k.warn != nil && s.Action != ActionNone {
		s.Warning = k.warn(x.part, x.was, x.is)
	}
	return s
}

// cellPlan is a change of cells, planned and not yet done.
type cellPlan[T any] struct {
	k        *cellKind[T]
	object   string
	title    string
	place    place
	options  json.RawMessage
	clusters []string
	cells    []cell[T]
	notes    []Note
	missing  []TargetError
}

// Kind names the form of Saved.
func (p *cellPlan[T]) Kind() string { return p.k.kind }

// Object is what is changed.
func (p *cellPlan[T]) Object() string { return p.object }

// Title says what is done.
func (p *cellPlan[T]) Title() string { return p.title }

// Clusters are those of the servers.
func (p *cellPlan[T]) Clusters() []string { return p.clusters }

// Notes are what else there is to know.
func (p *cellPlan[T]) Notes() []Note { return p.notes }

// Missing are the servers that could not be planned for.
func (p *cellPlan[T]) Missing() []TargetError { return p.missing }

func (p *cellPlan[T]) secrets() []string { return p.k.secretParts(p.cells) }

// Destroys reports whether something is taken away, or lost without having been read.
func (p *cellPlan[T]) Destroys() bool {
	if slices.ContainsFunc(p.notes, func(n Note) bool { return n.Word == wordLost }) {
		return true
	}
	return slices.ContainsFunc(p.cells, func(x cell[T]) bool { return p.k.action(x) == ActionDelete })
}

// Steps are the cells.
func (p *cellPlan[T]) Steps() []Step { return p.steps(p.cells) }

func (p *cellPlan[T]) steps(cells []cell[T]) []Step {
	out := make([]Step, 0, len(cells))
	for _, x := range cells {
		out = append(out, p.k.step(x, p.object))
	}
	return out
}

// wanted says what parts are to become.
type wanted[T any] struct {
	parts []string
	// make is what a part becomes at a server, nil when it goes. was is nil where it
	// is not there.
	make func(at Broker, part string, was *T) (*T, error)
}

// plan reads the present states at a place and plans what they are to become.
func (k *cellKind[T]) plan(ctx context.Context, c *Client, at place, object, title string, want wanted[T]) (*cellPlan[T], error) {
	servers, missing, err := c.servers(ctx, at)
	if err != nil {
		return nil, err
	}
	p := &cellPlan[T]{k: k, object: object, title: title, place: at, clusters: c.clustersNamed(ctx, servers), missing: missing}
	states, errs := k.readAll(ctx, c, servers, want.parts)
	p.missing = append(p.missing, errs...)
	for _, b := range servers {
		found, asked := states[b]
		if !asked {
			continue
		}
		for _, part := range want.parts {
			x := cell[T]{at: b, part: part, was: pointer(found, part)}
			if x.is, err = want.make(b, part, x.was); err != nil {
				return nil, err
			}
			p.cells = append(p.cells, x)
		}
	}
	p.addLost(ctx, c)
	return p, nil
}

// addLost tells in the notes what would be lost. A server of which that is not known is
// not changed.
func (p *cellPlan[T]) addLost(ctx context.Context, c *Client) {
	if p.k.lost == nil {
		return
	}
	notes, errs := p.k.lost(ctx, c, slices.DeleteFunc(slices.Clone(p.cells), func(x cell[T]) bool { return p.k.action(x) == ActionNone }))
	p.notes, p.missing = append(slices.Clone(p.notes), notes...), append(p.missing, errs...)
	p.cells = slices.DeleteFunc(p.cells, func(x cell[T]) bool {
		return slices.ContainsFunc(errs, func(e TargetError) bool { return e.Addr == x.at.Addr })
	})
}

func pointer[T any](m map[string]T, key string) *T {
	if v, ok := m[key]; ok {
		return &v
	}
	return nil
}

// readAll reads parts at several servers; one that did not answer is in the errors only.
func (k *cellKind[T]) readAll(ctx context.Context, c *Client, servers []Broker, parts []string) (map[Broker]map[string]T, []TargetError) {
	out := map[Broker]map[string]T{}
	errs := c.each(servers, func(mu *sync.Mutex, b Broker) error {
		found, err := k.read(ctx, c, b, parts)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", k.what, err)
		}
		mu.Lock()
		defer mu.Unlock()
		out[b] = found
		return nil
	})
	return out, errs
}

// Apply writes the cells and reads them back.
func (p *cellPlan[T]) Apply(ctx context.Context, c *Client) (*Applied, error) {
	byServer := map[Broker][]int{}
	var servers []Broker
	for i, x := range p.cells {
		if byServer[x.at] == nil {
			servers = append(servers, x.at)
		}
		byServer[x.at] = append(byServer[x.at], i)
	}
	done := make([]*cell[T], len(p.cells))
	out := &Applied{}
	out.Errors = c.each(servers, func(_ *sync.Mutex, b Broker) error { return p.applyAt(ctx, c, b, byServer[b], done) })
	var made []cell[T]
	for _, x := range done {
		if x != nil {
			made = append(made, *x)
		}
	}
	if p.k.settle != nil && len(made) > 0 {
		out.Errors = append(out.Errors, p.k.settle(ctx, c, p, made)...)
	}
	out.Steps = p.steps(made)
	undo := savedCells{Object: p.object, Title: p.title, Options: p.options, Place: p.place}
	var hidden []cell[T]
	for _, x := range made {
		if p.k.action(x) == ActionNone {
			continue
		}
		if p.k.final != nil && out.Final == nil {
			out.Final = p.k.final(x.was, x.is)
		}
		if p.k.secret(x) {
			hidden = append(hidden, x)
			continue
		}
		s, err := saveCell(cell[T]{at: x.at, part: x.part, was: x.is, is: x.was})
		if err != nil {
			return nil, err
		}
		undo.Cells = append(undo.Cells, s)
	}
	if len(hidden) > 0 {
		undo.Secrets = p.k.secretParts(hidden)
		out.Lasting = fmt.Errorf("the value of %s is a secret, which is written down nowhere", strings.Join(undo.Secrets, ", "))
		if out.Final == nil && len(undo.Cells) == 0 {
			out.Final = out.Lasting
		}
	}
	if out.Final == nil {
		out.Undo = undo
	} else {
		out.Lasting = nil
	}
	return out, nil
}

// applyAt writes the cells of one server, of which indexes are given, and reads them
// back. A part that fails does not keep the others from being written.
func (p *cellPlan[T]) applyAt(ctx context.Context, c *Client, b Broker, indexes []int, done []*cell[T]) error {
	var parts []string
	var failed []error
	for _, i := range indexes {
		x := p.cells[i]
		if p.k.action(x) == ActionNone {
			done[i] = &x
			continue
		}
		if err := p.k.write(ctx, c, cellWrite[T]{x.at, x.part, x.was, x.is, p.options}); err != nil {
			failed = append(failed, p.partError(x.part, err))
			continue
		}
		done[i] = &x
		parts = append(parts, x.part)
	}
	if len(parts) > 0 {
		now, err := p.k.read(ctx, c, b, parts)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("cannot read back %s: %w", p.k.what, err))...)
		}
		for _, i := range indexes {
			if x := done[i]; x != nil && slices.Contains(parts, x.part) {
				want := x.is
				x.is = pointer(now, x.part)
				if p.k.carry != nil && want != nil && x.is != nil {
					p.k.carry(want, x.is)
				}
				if !p.k.equal(want, x.is) {
					failed = append(failed, fmt.Errorf("cannot see the change of %s %s: read back %s", p.k.what, x.part, p.k.textOf(x.part, x.is)))
				}
			}
		}
	}
	return errors.Join(failed...)
}

func (p *cellPlan[T]) partError(part string, err error) error {
	if part == p.object {
		return err
	}
	return fmt.Errorf("%s %s: %w", p.k.what, part, err)
}
