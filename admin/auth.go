package admin

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/remoting"
)

// Kinds of plans that change users and policies of ACL 2.0.
const (
	kindUser   = "user"
	kindPolicy = "policy"
)

// User is a user of ACL 2.0 on one broker.
type User struct {
	Broker
	remoting.UserInfo
}

// Policy is what a subject may do with a resource on one broker.
type Policy struct {
	Broker
	Subject string
	Type    string // Custom or Default
	remoting.ACLEntry
}

// Users are the users on the brokers of a target, slaves too, whose names contain
// filter. A broker that has no users at all says so by an empty list.
func (c *Client) Users(ctx context.Context, t Target, filter string) ([]User, []TargetError, error) {
	brokers, err := c.targets(ctx, t, true)
	if err != nil {
		return nil, nil, err
	}
	var out []User
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		list, err := listBody[remoting.UserInfo](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqAuthListUser, &remoting.AuthListUserHeader{Filter: filter}))
		mu.Lock()
		defer mu.Unlock()
		for _, u := range list {
			out = append(out, User{b, u})
		}
		return err
	})
	sorted.By(out, func(a, b User) int {
		return cmp.Or(cmp.Compare(a.Username, b.Username), compareBrokers(a.Broker, b.Broker))
	})
	return out, errs, nil
}

// Policies are the policies on the brokers of a target, slaves too, whose subjects and
// resources contain the filters.
func (c *Client) Policies(ctx context.Context, t Target, subject, resource string) ([]Policy, []TargetError, error) {
	brokers, err := c.targets(ctx, t, true)
	if err != nil {
		return nil, nil, err
	}
	var out []Policy
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		list, err := listBody[remoting.ACLInfo](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqAuthListACL,
			&remoting.AuthListACLHeader{SubjectFilter: subject, ResourceFilter: resource}))
		mu.Lock()
		defer mu.Unlock()
		for _, acl := range list {
			out = append(out, policiesOf(b, acl)...)
		}
		return err
	})
	sorted.Stably(out, func(a, b Policy) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), compareBrokers(a.Broker, b.Broker))
	})
	return out, errs, nil
}

func policiesOf(b Broker, acl remoting.ACLInfo) []Policy {
	var out []Policy
	for _, p := range acl.Policies {
		for _, e := range p.Entries {
			out = append(out, Policy{b, acl.Subject, cmp.Or(p.PolicyType, "Custom"), e})
		}
	}
	return out
}

// listBody is askBody for a JSON list; an answer without a body is an empty one.
func listBody[T any](ctx context.Context, c *Client, addr string, req *remoting.Command) ([]T, error) {
	resp, err := c.ask(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	var out []T
	if len(resp.Body) == 0 {
		return nil, nil
	}
	if err := fastjson.Unmarshal(resp.Body, &out); err != nil {
		return nil, fmt.Errorf("cannot read answer to %s: %w", remoting.RequestName(req.Code), err)
	}
	return out, nil
}
