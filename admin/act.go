package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// kindAct is the kind of a plan that asks servers to do something, of which no state
// tells whether it has been done.
const kindAct = "act"

// actRequest is what is asked of servers, in the form that is written down.
type actRequest struct {
	Act    string            `json:"act"`
	Object string            `json:"object"`
	Place  place             `json:"place"`
	Args   map[string]string `json:"args,omitempty"`
}

// actKind is one thing that servers can be asked to do.
type actKind struct {
	title    func(r actRequest) string
	step     string // what a step says
	destroys bool
	final    string // why it cannot be taken back
	// notes are what else there is to know.
	notes func(ctx context.Context, c *Client, servers []Broker, r actRequest) ([]Note, []TargetError)
	// look finds out whether it can be done, and whether it is so already; nil: nobody can tell.
	look func(ctx context.Context, c *Client, r actRequest) (notes []Note, idle bool, err error)
	// do asks one server. What it answers is shown.
	do func(ctx context.Context, c *Client, at Broker, r actRequest) (string, error)
}

// actPlan is a request to servers, planned and not yet made.
type actPlan struct {
	k        *actKind
	r        actRequest
	clusters []string
	servers  []Broker
	notes    []Note
	missing  []TargetError
	idle     bool // it is so already
}

// Kind names the form of Saved.
func (p *actPlan) Kind() string { return kindAct }

// Object is what is asked for by name.
func (p *actPlan) Object() string { return p.r.Object }

// Title says what is done.
func (p *actPlan) Title() string { return p.k.title(p.r) }

// Clusters are those of the servers.
func (p *actPlan) Clusters() []string { return p.clusters }

// Notes are what else there is to know.
func (p *actPlan) Notes() []Note { return p.notes }

// Missing are the servers that could not be planned for.
func (p *actPlan) Missing() []TargetError { return p.missing }

// Destroys reports whether something goes that does not come back.
func (p *actPlan) Destroys() bool { return p.k.destroys }

// Steps are the servers that are asked.
func (p *actPlan) Steps() []Step {
	var out []Step
	for _, b := range p.servers {
		out = append(out, p.step(b, ""))
	}
	return out
}

func (p *actPlan) step(b Broker, said string) Step {
	s := Step{Broker: b.Name, Addr: b.Addr, Action: ActionUpdate, Text: p.k.step}
	switch {
	case p.idle:
		s.Action = ActionNone
	case p.k.destroys:
		s.Action = ActionDelete
	}
	if said != "" {
		s.After, s.Text = said, cmp.Or(p.k.step, said)
	}
	return s
}

// savedAct is an actPlan as it is written down.
type savedAct struct {
	Request actRequest `json:"request"`
	Servers []string   `json:"servers"` // addresses
	Notes   []Note     `json:"notes,omitempty"`
	Missing []string   `json:"missing,omitempty"`
}

// Saved is the plan in the form that can be written down.
func (p *actPlan) Saved() any {
	s := savedAct{Request: p.r, Notes: p.notes, Missing: missingNames(p.missing)}
	for _, b := range p.servers {
		s.Servers = append(s.Servers, b.Addr)
	}
	return s
}

// Apply asks the servers.
func (p *actPlan) Apply(ctx context.Context, c *Client) (*Applied, error) {
	said := map[Broker]string{}
	out := &Applied{Final: errors.New(p.k.final)}
	out.Errors = c.each(p.servers, func(mu *sync.Mutex, b Broker) error {
		text, err := p.k.do(ctx, c, b, p.r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		said[b] = text
		return nil
	})
	for _, b := range p.servers {
		if text, ok := said[b]; ok {
			out.Steps = append(out.Steps, p.step(b, text))
		}
	}
	return out, nil
}

func (c *Client) planAct(ctx context.Context, r actRequest) (*actPlan, error) {
	k := acts()[r.Act]
	if k == nil {
		return nil, fmt.Errorf("cannot ask servers for %q: no such act is known", r.Act)
	}
	servers, missing, err := c.servers(ctx, r.Place)
	if err != nil {
		return nil, err
	}
	p := &actPlan{k: k, r: r, clusters: c.clustersNamed(ctx, servers), servers: servers, missing: missing}
	if k.look != nil {
		if p.notes, p.idle, err = k.look(ctx, c, r); err != nil {
			return nil, err
		}
	}
	if k.notes != nil {
		notes, errs := k.notes(ctx, c, servers, r)
		p.notes, p.missing = notes, append(p.missing, errs...)
		// Of whom it is not known what would be lost, nothing is asked.
		p.servers = slices.DeleteFunc(slices.Clone(servers), func(b Broker) bool {
			return slices.ContainsFunc(errs, func(e TargetError) bool { return e.Addr == b.Addr })
		})
	}
	return p, nil
}

func replanAct(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	s, err := readSaved[savedAct](kindAct, saved)
	if err != nil {
		return nil, err
	}
	p, err := c.planAct(ctx, s.Request)
	if err != nil {
		return nil, err
	}
	now, _ := p.Saved().(savedAct)
	var gone []string
	if !slices.Equal(s.Servers, now.Servers) {
		gone = append(gone, fmt.Sprintf("servers were %v, are %v", s.Servers, now.Servers))
	}
	for _, n := range now.Notes {
		if !slices.Contains(s.Notes, n) && n.Word == wordLost {
			gone = append(gone, "since: "+n.Text)
		}
	}
	if len(gone) > 0 {
		return nil, &ChangedError{Kind: "server", Object: s.Request.Object, Differences: gone}
	}
	return p, nil
}

// wordLost marks the notes of what would be lost: a plan is made anew when there is
// more of it.
const wordLost = "unread"

// planOneAct plans an act as an interface value.
func (c *Client) planOneAct(ctx context.Context, r actRequest) (Plan, error) {
	p, err := c.planAct(ctx, r)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func objectTitle(verb string) func(actRequest) string {
	return func(r actRequest) string { return strings.TrimSpace(verb + " " + r.Object) }
}
