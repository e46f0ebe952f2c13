package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// savedCells is a cellPlan as it is written down; of an undo, was is what the change
// left and is what it found.
type savedCells struct {
	Object   string          `json:"object"`
	Title    string          `json:"title"`
	Place    place           `json:"place"`
	Options  json.RawMessage `json:"options,omitempty"`
	Clusters []string        `json:"clusters,omitempty"`
	Cells    []savedCell     `json:"cells"`
	Notes    []Note          `json:"notes,omitempty"`
	Missing  []string        `json:"missing,omitempty"`
	// Secrets are parts that are left out, since a state of theirs is a secret.
	Secrets []string `json:"secrets,omitempty"`
}

type savedCell struct {
	Cluster string          `json:"cluster,omitempty"`
	Broker  string          `json:"broker,omitempty"`
	ID      int64           `json:"id,omitempty"`
	Addr    string          `json:"addr"`
	Part    string          `json:"part"`
	Was     json.RawMessage `json:"was,omitempty"`
	Is      json.RawMessage `json:"is,omitempty"`
}

func (s savedCell) at() Broker {
	return Broker{Cluster: s.Cluster, Name: s.Broker, ID: s.ID, Addr: s.Addr}
}

func saveCell[T any](x cell[T]) (savedCell, error) {
	s := savedCell{Cluster: x.at.Cluster, Broker: x.at.Name, ID: x.at.ID, Addr: x.at.Addr, Part: x.part}
	for _, v := range []struct {
		from *T
		to   *json.RawMessage
	}{{x.was, &s.Was}, {x.is, &s.Is}} {
		if v.from == nil {
			continue
		}
		text, err := json.Marshal(v.from)
		if err != nil {
			return s, fmt.Errorf("cannot write down %q: %w", x.part, err)
		}
		*v.to = text
	}
	return s, nil
}

func loadCell[T any](s savedCell) (cell[T], error) {
	x := cell[T]{at: s.at(), part: s.Part}
	for _, v := range []struct {
		from json.RawMessage
		to   **T
	}{{s.Was, &x.was}, {s.Is, &x.is}} {
		if len(v.from) == 0 || string(v.from) == "null" {
			continue
		}
		*v.to = new(T)
		if err := json.Unmarshal(v.from, *v.to); err != nil {
			return x, fmt.Errorf("cannot read the written state of %q: %w", s.Part, err)
		}
	}
	return x, nil
}

// Saved is the plan in the form that can be written down, without secrets: their parts are
// named, and Replan refuses such a plan. A state that has no JSON form is a fault of this
// program: it is missing, and Replan refuses that too.
func (p *cellPlan[T]) Saved() any {
	s := savedCells{Object: p.object, Title: p.title, Place: p.place, Options: p.options, Clusters: p.clusters, Notes: p.notes, Missing: missingNames(p.missing), Secrets: p.secrets()}
	for _, x := range p.cells {
		if p.k.secret(x) {
			continue
		}
		if saved, err := saveCell(x); err == nil {
			s.Cells = append(s.Cells, saved)
		}
	}
	return s
}

// planKind is how plans of this kind come back from their written forms.
func (k *cellKind[T]) planKind() planKind { return planKind{k.replan, k.undo} }

func (k *cellKind[T]) replan(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	s, err := readSaved[savedCells](k.kind, saved)
	if err != nil {
		return nil, err
	}
	if len(s.Secrets) > 0 {
		return nil, &SecretPlanError{s.Object, s.Secrets}
	}
	servers, missing, err := c.servers(ctx, s.Place)
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, b := range servers {
		if !slices.ContainsFunc(s.Cells, func(x savedCell) bool { return x.Addr == b.Addr }) && !slices.Contains(s.Missing, nameOf(b)) {
			gone = append(gone, fmt.Sprintf("%s was not part of it", who(b)))
		}
	}
	for _, x := range s.Cells {
		if !slices.Contains(servers, x.at()) {
			gone = append(gone, fmt.Sprintf("%s is no longer part of it", who(x.at())))
		}
	}
	p, differences, err := k.compare(ctx, c, s, missing)
	if err != nil {
		return nil, err
	}
	if was := s.Missing; !slices.Equal(was, missingNames(p.missing)) {
		gone = append(gone, fmt.Sprintf("servers without an answer were %v, are %v", was, missingNames(p.missing)))
	}
	p.notes = slices.DeleteFunc(slices.Clone(s.Notes), func(n Note) bool { return n.Word == wordLost })
	p.addLost(ctx, c)
	for _, n := range p.notes {
		if n.Word == wordLost && !slices.ContainsFunc(s.Notes, func(m Note) bool { return m.Word == wordLost && sameLoss(m.Text, n.Text) }) {
			gone = append(gone, "since: "+n.Text)
		}
	}
	if gone = append(gone, differences...); len(gone) > 0 {
		return nil, &ChangedError{Kind: k.what, Object: s.Object, Differences: slices.Compact(gone)}
	}
	return p, nil
}

// sameLoss reports whether two notes are of the same queue and group: that there are more
// messages is no reason to plan anew.
func sameLoss(a, b string) bool {
	_, a, _ = strings.Cut(a, " of topic ")
	_, b, _ = strings.Cut(b, " of topic ")
	return a == b
}

// compare reads what a saved plan rests on and makes the plan anew. A cell that is
// already what the plan wanted is no difference.
func (k *cellKind[T]) compare(ctx context.Context, c *Client, s *savedCells, missing []TargetError) (*cellPlan[T], []string, error) {
	p := &cellPlan[T]{k: k, object: s.Object, title: s.Title, place: s.Place, options: s.Options, clusters: s.Clusters, notes: s.Notes, missing: missing}
	var servers []Broker
	parts := map[Broker][]string{}
	for _, x := range s.Cells {
		if parts[x.at()] == nil {
			servers = append(servers, x.at())
		}
		parts[x.at()] = append(parts[x.at()], x.Part)
	}
	var all []string
	for _, b := range servers {
		all = append(all, parts[b]...)
	}
	slices.Sort(all)
	states, errs := k.readAll(ctx, c, servers, slices.Compact(all))
	p.missing = append(p.missing, errs...)
	var differences []string
	for _, saved := range s.Cells {
		x, err := loadCell[T](saved)
		if err != nil {
			return nil, nil, err
		}
		found, asked := states[x.at]
		if !asked {
			continue
		}
		now := pointer(found, x.part)
		if !k.equal(now, x.was) && !k.equal(now, x.is) {
			differences = append(differences, fmt.Sprintf("%s %s on %s was %s, is %s", k.what, x.part, who(x.at), k.textOf(x.part, x.was), k.textOf(x.part, now)))
		}
		x.was = now
		p.cells = append(p.cells, x)
	}
	return p, differences, nil
}

// undo plans to make cells what they were before a change. Somebody else's change
// since is a *ChangedError.
func (k *cellKind[T]) undo(ctx context.Context, c *Client, object string, undo []byte) ([]Plan, error) {
	s, err := readSaved[savedCells](k.kind, undo)
	if err != nil {
		return nil, err
	}
	var servers []Broker
	var gone []string
	var all []Broker
	for _, x := range s.Cells {
		if b := x.at(); !slices.Contains(servers, b) {
			servers = append(servers, b)
		}
	}
	if slices.ContainsFunc(servers, func(b Broker) bool { return b.Name != "" }) {
		if all, err = c.Cluster(ctx); err != nil {
			return nil, err
		}
	}
	for _, b := range servers {
		if b.Name != "" && !slices.Contains(all, b) {
			gone = append(gone, fmt.Sprintf("%s is no longer part of the cluster in that role", who(b)))
		}
	}
	if len(gone) > 0 {
		return nil, &ChangedError{Kind: k.what, Object: object, Differences: gone}
	}
	s.Title, s.Clusters, s.Notes = "undo: "+s.Title, c.clustersNamed(ctx, servers), nil
	p, gone, err := k.compare(ctx, c, s, nil)
	if err != nil {
		return nil, err
	}
	if len(p.missing) > 0 {
		return nil, p.missing[0]
	}
	if len(gone) > 0 {
		return nil, &ChangedError{Kind: k.what, Object: object, Differences: gone}
	}
	if len(s.Secrets) > 0 {
		p.notes = append(p.notes, Note{"stays", strings.Join(s.Secrets, ", ") + " as it is: a secret, whose value before was written down nowhere"})
	}
	p.addLost(ctx, c)
	return []Plan{p}, nil
}

func nameOf(b Broker) string {
	if b.Name != "" {
		return b.Name
	}
	return b.Addr
}

// who names a server for a person.
func who(b Broker) string {
	if b.Name != "" {
		return "broker " + b.Name + " (" + b.Addr + ")"
	}
	return "server " + b.Addr
}
