package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// topicResult is what was done: every change with the state read back.
type topicResult struct {
	done   []Change
	errors []TargetError
}

// orderNamespace holds the queue counts of ordered topics at the name servers.
const orderNamespace = "ORDER_TOPIC_CONFIG"

// Apply carries the plan out and reads it back.
func (p *TopicPlan) Apply(ctx context.Context, c *Client) (*Applied, error) {
	var r *topicResult
	switch p.Action {
	case ActionCreate, actionRestore:
		r = c.applyCreate(ctx, p)
	case ActionDelete:
		r = c.applyDelete(ctx, p)
	default:
		return nil, fmt.Errorf("cannot apply a plan that would %q topic %q", p.Action, p.Topic)
	}
	return &Applied{Steps: topicSteps(r.done), Errors: r.errors, Undo: r.done, Final: canUndo(r.done)}, nil
}

func (c *Client) applyCreate(ctx context.Context, p *TopicPlan) *topicResult {
	done := make([]*Change, len(p.Changes))
	index := map[Broker]int{}
	for i, b := range p.brokers {
		index[b] = i
	}
	res := &topicResult{}
	res.errors = c.each(p.brokers, func(_ *sync.Mutex, b Broker) error {
		ch := p.Changes[index[b]]
		if ch.Action == ActionNone {
			done[index[b]] = &ch
			return nil
		}
		if _, err := c.ask(ctx, b.Addr, createRequest(p.attributes(&ch), ch.After, p.Topic)); err != nil {
			return err
		}
		now, err := c.topicConfig(ctx, b.Addr, p.Topic)
		if err != nil {
			return fmt.Errorf("cannot read back topic %q: %w", p.Topic, err)
		}
		read := topicBroker(b, *now)
		want := ch.After
		ch.After = &read
		done[index[b]] = &ch
		if !sameQueues(want, &read) {
			return fmt.Errorf("cannot see the change of topic %q: read back %d read and %d write queues, permission %d", p.Topic, read.ReadQueues, read.WriteQueues, read.Perm)
		}
		return nil
	})
	for _, ch := range done {
		if ch != nil {
			res.done = append(res.done, *ch)
		}
	}
	if p.spec.Order || p.Action == actionRestore && changesOrder(res.done) {
		res.errors = append(res.errors, c.putOrder(ctx, p, res.done)...)
	}
	return res
}

// attributes is the change of attributes that goes with a change.
func (p *TopicPlan) attributes(ch *Change) map[string]string {
	if p.Action != actionRestore || ch.Before == nil {
		return p.spec.Attributes
	}
	out := map[string]string{}
	for k, v := range ch.After.Attributes {
		if was, ok := ch.Before.Attributes[k]; !ok || was != v {
			out["+"+k] = v
		}
	}
	for k := range ch.Before.Attributes {
		if _, ok := ch.After.Attributes[k]; !ok {
			out["-"+k] = ""
		}
	}
	return out
}

func changesOrder(done []Change) bool {
	return slices.ContainsFunc(done, func(ch Change) bool {
		return ch.Before != nil && ch.After != nil && (ch.Before.Order || ch.After.Order)
	})
}

func sameQueues(a, b *TopicBroker) bool {
	return a.ReadQueues == b.ReadQueues && a.WriteQueues == b.WriteQueues && a.Perm == b.Perm
}

// createRequest is UPDATE_AND_CREATE_TOPIC as mqadmin sends it.
func createRequest(attributes map[string]string, t *TopicBroker, topic string) *remoting.Command {
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: topic, DefaultTopic: message.TopicAutoCreate, ReadQueueNums: int32(t.ReadQueues), WriteQueueNums: int32(t.WriteQueues),
		Perm: int32(t.Perm), TopicFilterType: remoting.FilterSingleTag, TopicSysFlag: int32(t.SysFlag), Order: t.Order,
	})
	req.Fields.Set("attributes", attributeText(attributes))
	req.Fields.SetBool("force", false)
	return req
}

// putOrder notes the queue counts of an ordered topic at every name server.
func (c *Client) putOrder(ctx context.Context, p *TopicPlan, done []Change) []TargetError {
	counts := map[string]string{}
	old, err := c.askNameServers(ctx, remoting.NewRequest(remoting.ReqGetKVConfig, &remoting.GetKVConfigHeader{Namespace: orderNamespace, Key: p.Topic}), succeeded)
	switch {
	case err == nil:
		for part := range strings.SplitSeq(old.Fields.String("value"), ";") {
			if broker, n, ok := strings.Cut(part, ":"); ok {
				counts[broker] = n
			}
		}
	case !hasCode(err, remoting.RespQueryNotFound):
		return []TargetError{{Addr: c.ns.Current(), Err: err}}
	}
	for _, ch := range done {
		switch {
		case ch.Broker == "":
		case ch.After.Order:
			counts[ch.Broker] = strconv.Itoa(ch.After.WriteQueues)
		default:
			delete(counts, ch.Broker)
		}
	}
	if len(counts) == 0 {
		return c.eachNameServer(ctx, remoting.NewRequest(remoting.ReqDeleteKVConfig, &remoting.DeleteKVConfigHeader{Namespace: orderNamespace, Key: p.Topic}))
	}
	var parts []string
	for _, broker := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, broker+":"+counts[broker])
	}
	return c.eachNameServer(ctx, remoting.NewRequest(remoting.ReqPutKVConfig, &remoting.PutKVConfigHeader{
		Namespace: orderNamespace, Key: p.Topic, Value: strings.Join(parts, ";"),
	}))
}

// eachNameServer sends a request to every name server: they know nothing of each other.
func (c *Client) eachNameServer(ctx context.Context, req *remoting.Command) []TargetError {
	var servers []Broker
	for _, addr := range c.ns.All() {
		servers = append(servers, Broker{Addr: addr})
	}
	return c.each(servers, func(_ *sync.Mutex, s Broker) error {
		r := *req // fields are shared and not changed; the opaque is not
		r.Fields = slices.Clone(req.Fields)
		_, err := c.ask(ctx, s.Addr, &r)
		return err
	})
}

func (c *Client) applyDelete(ctx context.Context, p *TopicPlan) *topicResult {
	res := &topicResult{}
	var mine sync.Mutex
	failed := map[string]bool{} // clusters in which a broker still has the topic
	res.errors = c.each(p.brokers, func(_ *sync.Mutex, b Broker) error {
		_, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: p.Topic}))
		if err == nil {
			_, err = c.topicConfig(ctx, b.Addr, p.Topic)
			switch {
			case hasCode(err, remoting.RespTopicNotExist):
				err = nil
			case err == nil:
				err = errors.New("the topic is still there")
			default:
				err = fmt.Errorf("cannot read back topic %q: %w", p.Topic, err)
			}
		}
		mine.Lock()
		defer mine.Unlock()
		if err != nil {
			failed[b.Cluster] = true
			return err
		}
		i := slices.Index(p.brokers, b)
		res.done = append(res.done, p.Changes[i])
		return nil
	})
	sorted.By(res.done, func(a, b Change) int { return cmp.Compare(a.Broker, b.Broker) })
	errs := c.deleteRoutes(ctx, p, failed)
	if len(p.brokers) == 0 && len(errs) == 0 {
		res.done = append(res.done, p.Changes...)
	}
	res.errors = append(res.errors, errs...)
	return res
}

// deleteRoutes takes the topic out of the routes of clusters that have given it up.
// Where brokers of a cluster keep it their registrations say so.
func (c *Client) deleteRoutes(ctx context.Context, p *TopicPlan, failed map[string]bool) (errs []TargetError) {
	for _, cluster := range p.clusters {
		if failed[cluster] {
			continue
		}
		errs = append(errs, c.eachNameServer(ctx, remoting.NewRequest(remoting.ReqDeleteTopicInNamesrv,
			&remoting.DeleteTopicFromNamesrvHeader{Topic: p.Topic, ClusterName: cluster}))...)
	}
	var none *NotFoundError
	if _, err := c.route(ctx, p.Topic); !errors.As(err, &none) {
		if err != nil {
			errs = append(errs, TargetError{Addr: c.ns.Current(), Err: err})
		}
		return errs // other brokers have it
	}
	key := remoting.GetKVConfigHeader{Namespace: orderNamespace, Key: p.Topic}
	_, err := c.askNameServers(ctx, remoting.NewRequest(remoting.ReqGetKVConfig, &key), succeeded)
	switch {
	case hasCode(err, remoting.RespQueryNotFound):
		return errs
	case err != nil:
		return append(errs, TargetError{Addr: c.ns.Current(), Err: fmt.Errorf("cannot look for the order configuration: %w", err)})
	}
	del := remoting.DeleteKVConfigHeader(key)
	return append(errs, c.eachNameServer(ctx, remoting.NewRequest(remoting.ReqDeleteKVConfig, &del))...)
}
