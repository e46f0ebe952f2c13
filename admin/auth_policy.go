package admin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

// PolicyState is what a subject may do with a resource, as a step shows it.
type PolicyState struct {
	Actions   []string `json:"actions" yaml:"actions"`
	SourceIPs []string `json:"sourceIps,omitempty" yaml:"sourceIps,omitempty"`
	Decision  string   `json:"decision" yaml:"decision"` // Allow or Deny
}

// String is the policy in words.
func (p PolicyState) String() string {
	text := strings.ToLower(p.Decision) + " " + strings.Join(p.Actions, ", ")
	if len(p.SourceIPs) > 0 {
		text += " from " + strings.Join(p.SourceIPs, ", ")
	}
	return text
}

// policyCells are the policies of one subject; a part is TYPE SUBJECT RESOURCE.
var policyCells = &cellKind[PolicyState]{
	kind: kindPolicy, what: "policy",
	same: func(a, b PolicyState) bool {
		return a.Decision == b.Decision && sameSet(a.Actions, b.Actions) && sameSet(a.SourceIPs, b.SourceIPs)
	},
	read: func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]PolicyState, error) {
		out := map[string]PolicyState{}
		asked := map[string]bool{}
		for _, part := range parts {
			_, subject, _ := splitPolicy(part)
			if asked[subject] {
				continue
			}
			asked[subject] = true
			found, err := c.policies(ctx, at, subject)
			if err != nil {
				return nil, err
			}
			for _, p := range found {
				out[policyPart(p.Type, subject, p.Resource)] = PolicyState{p.Actions, p.SourceIPs, p.Decision}
			}
		}
		return out, nil
	},
	write: func(ctx context.Context, c *Client, w cellWrite[PolicyState]) error {
		kind, subject, resource := splitPolicy(w.Part)
		if w.Is == nil {
			_, err := c.ask(ctx, w.At.Addr, remoting.NewRequest(remoting.ReqAuthDeleteACL, &remoting.AuthDeleteACLHeader{Subject: subject, PolicyType: kind, Resource: resource}))
			return err
		}
		body, err := fastjson.Marshal(&remoting.ACLInfo{Subject: subject, Policies: []remoting.ACLPolicy{{
			PolicyType: kind, Entries: []remoting.ACLEntry{{Actions: w.Is.Actions, Decision: w.Is.Decision, Resource: resource, SourceIPs: w.Is.SourceIPs}},
		}}})
		if err != nil {
			return fmt.Errorf("cannot write policy: %w", err)
		}
		req := remoting.NewRequest(remoting.ReqAuthUpdateACL, &remoting.AuthUpdateACLHeader{Subject: subject})
		if w.Was == nil {
			req = remoting.NewRequest(remoting.ReqAuthCreateACL, &remoting.AuthCreateACLHeader{Subject: subject})
		}
		req.Body = body
		_, err = c.ask(ctx, w.At.Addr, req)
		return err
	},
}

func policyPart(kind, subject, resource string) string {
	return kind + " " + subject + " " + resource
}

func splitPolicy(part string) (kind, subject, resource string) {
	kind, rest, _ := strings.Cut(part, " ")
	subject, resource, _ = strings.Cut(rest, " ")
	return kind, subject, resource
}

func sameSet(a, b []string) bool {
	x, y := slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return len(x) == 0 && len(y) == 0 || reflect.DeepEqual(x, y)
}

// policies are those of one subject on one broker.
func (c *Client) policies(ctx context.Context, at Broker, subject string) ([]Policy, error) {
	resp, err := c.ask(ctx, at.Addr, remoting.NewRequest(remoting.ReqAuthGetACL, &remoting.AuthGetACLHeader{Subject: subject}))
	if hasCode(err, remoting.RespPolicyNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var acl remoting.ACLInfo
	if len(resp.Body) == 0 || string(resp.Body) == "null" {
		return nil, nil
	}
	if err := fastjson.Unmarshal(resp.Body, &acl); err != nil {
		return nil, fmt.Errorf("cannot read policies of %q: %w", subject, err)
	}
	acl.Subject = subject
	return policiesOf(at, acl), nil
}

// PolicySpec is what a subject may do with resources.
type PolicySpec struct {
	Subject   string   // User:NAME
	Resources []string // Topic:NAME, Group:NAME, Cluster:NAME; * for all, or a prefix before it
	PolicyState
	Default                 bool // the policies that hold where no other does
	MustExist, MustNotExist bool
}

func (s *PolicySpec) check() error {
	if kind, name, ok := strings.Cut(s.Subject, ":"); !ok || kind == "" || name == "" || strings.ContainsAny(s.Subject, " \t\n") {
		return invalidf("cannot use subject %q: it has the form User:NAME", s.Subject)
	}
	if len(s.Resources) == 0 {
		return invalidf("cannot plan a policy: no resource is given")
	}
	for _, r := range s.Resources {
		if r == "*" || r == "" || strings.ContainsAny(r, " \t\n") {
			if r == "*" {
				continue
			}
			return invalidf("cannot use resource %q: it has the form Topic:NAME, Group:NAME or Cluster:NAME", r)
		}
		if kind, name, ok := strings.Cut(r, ":"); !ok || kind == "" || name == "" {
			return invalidf("cannot use resource %q: it has the form Topic:NAME, Group:NAME or Cluster:NAME", r)
		}
	}
	return nil
}

func (s *PolicySpec) parts() []string {
	kind := "Custom"
	if s.Default {
		kind = "Default"
	}
	var out []string
	for _, r := range s.Resources {
		out = append(out, policyPart(kind, s.Subject, r))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// PlanPolicy plans to let a subject do something with resources, or to deny it, on all
// brokers of a target, slaves too.
func (c *Client) PlanPolicy(ctx context.Context, t Target, s PolicySpec) (Plan, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if len(s.Actions) == 0 || s.Decision == "" {
		return nil, invalidf("cannot plan a policy: actions or the decision are missing")
	}
	verb := "create"
	if s.MustExist {
		verb = "change"
	}
	state := s.PolicyState
	p, err := policyCells.plan(ctx, c, place{Brokers: &t}, s.Subject, verb+" policies of "+s.Subject, wanted[PolicyState]{
		parts: s.parts(),
		make: func(at Broker, part string, was *PolicyState) (*PolicyState, error) {
			switch {
			case was != nil && s.MustNotExist:
				return nil, &ExistsError{"policy", part}
			case was == nil && s.MustExist:
				return nil, &NotFoundError{Kind: "policy", Name: part + " on " + nameOf(at)}
			}
			return &state, nil
		},
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// PlanDeletePolicy plans to take the policies of a subject for resources away; without
// resources, all of it.
func (c *Client) PlanDeletePolicy(ctx context.Context, t Target, s PolicySpec) (Plan, error) {
	if len(s.Resources) == 0 {
		all, errs, err := c.Policies(ctx, t, s.Subject, "")
		if err != nil {
			return nil, err
		}
		if len(errs) > 0 {
			return nil, errs[0]
		}
		for _, p := range all {
			if p.Subject == s.Subject && (p.Type == "Default") == s.Default {
				s.Resources = append(s.Resources, p.Resource)
			}
		}
		if len(s.Resources) == 0 {
			return nil, &NotFoundError{Kind: "policy of", Name: s.Subject}
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	p, err := policyCells.plan(ctx, c, place{Brokers: &t}, s.Subject, "delete policies of "+s.Subject, wanted[PolicyState]{
		parts: s.parts(),
		make:  func(Broker, string, *PolicyState) (*PolicyState, error) { return nil, nil },
	})
	if err != nil {
		return nil, err
	}
	return deleting(p, "policy of", s.Subject)
}

// PlanCopyUsers plans to make users of one broker on others what they are there, with
// their passwords; no names means all.
func (c *Client) PlanCopyUsers(ctx context.Context, from, to string, names []string) (Plan, error) {
	all, errs, err := c.Users(ctx, Target{Broker: from}, "")
	if err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		return nil, errs[0]
	}
	users := map[string]UserState{}
	for _, u := range all {
		if len(names) == 0 || slices.Contains(names, u.Username) {
			users[u.Username] = UserState{Type: u.UserType, Status: u.UserStatus, Password: u.Password, SetPassword: u.Password != ""}
		}
	}
	for _, n := range names {
		if _, ok := users[n]; !ok {
			return nil, &NotFoundError{Kind: "user", Name: n}
		}
	}
	return copied(ctx, c, userCells, users, from, to, "users")
}

// PlanCopyPolicies plans to make the policies of subjects of one broker on another
// what they are there; no subjects means all.
func (c *Client) PlanCopyPolicies(ctx context.Context, from, to string, subjects []string) (Plan, error) {
	all, errs, err := c.Policies(ctx, Target{Broker: from}, "", "")
	if err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		return nil, errs[0]
	}
	policies, seen := map[string]PolicyState{}, map[string]bool{}
	for _, p := range all {
		if len(subjects) == 0 || slices.Contains(subjects, p.Subject) {
			policies[policyPart(p.Type, p.Subject, p.Resource)] = PolicyState{p.Actions, p.SourceIPs, p.Decision}
			seen[p.Subject] = true
		}
	}
	for _, s := range subjects {
		if !seen[s] {
			return nil, &NotFoundError{Kind: "policy of", Name: s}
		}
	}
	return copied(ctx, c, policyCells, policies, from, to, "policies")
}

func copied[T any](ctx context.Context, c *Client, k *cellKind[T], states map[string]T, from, to, what string) (Plan, error) {
	want := wanted[T]{make: func(_ Broker, part string, _ *T) (*T, error) {
		s := states[part]
		return &s, nil
	}}
	for part := range states {
		want.parts = append(want.parts, part)
	}
	slices.Sort(want.parts)
	p, err := k.plan(ctx, c, place{Brokers: &Target{Broker: to}}, what, fmt.Sprintf("copy %s from %s to %s", what, from, to), want)
	if err != nil {
		return nil, err
	}
	return p, nil
}
