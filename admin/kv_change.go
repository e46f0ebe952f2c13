package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mqx/internal/words"
	"mqx/remoting"
)

// Kinds of plans that change what name servers keep.
const (
	kindKV       = "kv"
	kindWritable = "writable"
)

// kvCells are the key-value table of name servers; a part is NAMESPACE/KEY.
var kvCells = &cellKind[string]{
	kind: kindKV, what: "entry",
	read: func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]string, error) {
		out := map[string]string{}
		for _, part := range parts {
			namespace, key, _ := strings.Cut(part, "/")
			resp, err := c.ask(ctx, at.Addr, remoting.NewRequest(remoting.ReqGetKVConfig, &remoting.GetKVConfigHeader{Namespace: namespace, Key: key}))
			switch {
			case err == nil:
				out[part] = resp.Fields.String("value")
			case !hasCode(err, remoting.RespQueryNotFound):
				return nil, err
			}
		}
		return out, nil
	},
	write: func(ctx context.Context, c *Client, w cellWrite[string]) error {
		namespace, key, _ := strings.Cut(w.Part, "/")
		req := remoting.NewRequest(remoting.ReqDeleteKVConfig, &remoting.DeleteKVConfigHeader{Namespace: namespace, Key: key})
		if w.Is != nil {
			req = remoting.NewRequest(remoting.ReqPutKVConfig, &remoting.PutKVConfigHeader{Namespace: namespace, Key: key, Value: *w.Is})
		}
		_, err := c.ask(ctx, w.At.Addr, req)
		return err
	},
}

// PlanKV plans to set an entry of the key-value table at every name server, which
// know nothing of each other; a nil value takes it away, and is a *NotFoundError
// where none of them has it.
func (c *Client) PlanKV(ctx context.Context, namespace, key string, value *string) (Plan, error) {
	if namespace == "" || key == "" || strings.Contains(namespace, "/") {
		return nil, invalidf("cannot use entry %q of namespace %q: neither may be empty, a namespace has no /", key, namespace)
	}
	verb := "set"
	if value == nil {
		verb = "delete"
	}
	p, err := kvCells.plan(ctx, c, place{NameServers: true}, key, fmt.Sprintf("%s entry %s of namespace %s", verb, key, namespace), wanted[string]{
		parts: []string{namespace + "/" + key},
		make:  func(Broker, string, *string) (*string, error) { return value, nil },
	})
	if err != nil {
		return nil, err
	}
	if value == nil && Idle(p) && len(p.missing) == 0 {
		return nil, &NotFoundError{Kind: "entry", Name: namespace + "/" + key}
	}
	return p, nil
}

// PlanOrderConf plans to set the order configuration of a topic at every name server:
// BROKER:QUEUES, ; between them. A nil value takes it away.
func (c *Client) PlanOrderConf(ctx context.Context, topic string, value *string) (Plan, error) {
	if value != nil {
		if err := checkOrderConf(*value); err != nil {
			return nil, err
		}
	}
	return c.PlanKV(ctx, orderNamespace, topic, value)
}

// OrderConf is the order configuration of a topic, as the name servers give it; a
// topic without one is a *NotFoundError.
func (c *Client) OrderConf(ctx context.Context, topic string) (string, error) {
	resp, err := c.askNameServers(ctx, remoting.NewRequest(remoting.ReqGetKVConfig, &remoting.GetKVConfigHeader{Namespace: orderNamespace, Key: topic}), succeeded)
	if hasCode(err, remoting.RespQueryNotFound) {
		return "", &NotFoundError{Kind: "order configuration of topic", Name: topic}
	}
	if err != nil {
		return "", fmt.Errorf("cannot read order configuration of topic %q: %w", topic, err)
	}
	return resp.Fields.String("value"), nil
}

// checkOrderConf refuses what clients cannot read.
func checkOrderConf(text string) error {
	for part := range strings.SplitSeq(text, ";") {
		broker, n, ok := strings.Cut(part, ":")
		if queues := 0; !ok || broker == "" || !plainNumber(n, &queues) || queues < 1 {
			return invalidf("cannot use order configuration %q: it has the form BROKER:QUEUES, ; between them", text)
		}
	}
	return nil
}

func plainNumber(text string, to *int) bool {
	n := 0
	for _, r := range text {
		if r < '0' || r > '9' || n > 1<<20 {
			return false
		}
		n = n*10 + int(r-'0')
	}
	*to = n
	return text != ""
}

// WritableState is whether clients are told to write to a broker.
type WritableState struct {
	Writable bool `json:"writable" yaml:"writable"`
	// Topics is how many the name server says it has changed; not known before.
	Topics *int32 `json:"topics,omitempty" yaml:"topics,omitempty"`
}

// String is the state in words.
func (s WritableState) String() string {
	text := "not writable"
	if s.Writable {
		text = "writable"
	}
	if s.Topics != nil {
		text += " (" + words.Count(int64(*s.Topics), "topic") + ")"
	}
	return text
}

// errNotRegistered is why the write permission of a broker cannot be changed.
var errNotRegistered = errors.New("the name server does not know the broker")

// writableCells are the write permission of brokers in the routes of name servers. A
// name server has no request for it; the route of the topic that each broker has under
// its own name shows it.
var writableCells = &cellKind[WritableState]{
	kind: kindWritable, what: "write permission of broker",
	same:  func(a, b WritableState) bool { return a.Writable == b.Writable },
	carry: func(from, to *WritableState) { to.Topics = from.Topics },
	read: func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]WritableState, error) {
		out := map[string]WritableState{}
		for _, broker := range parts {
			route, err := askBody[remoting.TopicRouteData](ctx, c, at.Addr, remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: broker}))
			switch {
			case hasCode(err, remoting.RespTopicNotExist):
				return nil, errNotRegistered
			case err != nil:
				return nil, err
			}
			for _, q := range route.QueueDatas {
				if q.BrokerName == broker {
					out[broker] = WritableState{Writable: q.Perm&2 != 0}
				}
			}
			if _, ok := out[broker]; !ok {
				return nil, errNotRegistered
			}
		}
		return out, nil
	},
	write: func(ctx context.Context, c *Client, w cellWrite[WritableState]) error {
		req, field := remoting.NewRequest(remoting.ReqWipeWritePermOfBroker, &remoting.WipeWritePermOfBrokerHeader{BrokerName: w.Part}), "wipeTopicCount"
		if w.Is.Writable {
			req, field = remoting.NewRequest(remoting.ReqAddWritePermOfBroker, &remoting.AddWritePermOfBrokerHeader{BrokerName: w.Part}), "addTopicCount"
		}
		resp, err := c.ask(ctx, w.At.Addr, req)
		if err != nil {
			return err
		}
		if n, ok, err := resp.Fields.Int32(field); ok && err == nil {
			w.Is.Topics = &n
		}
		return nil
	},
}

// PlanWritable plans to take the write permission of a broker out of the routes of all
// name servers, or to give it back. It does not last: a note says through what.
func (c *Client) PlanWritable(ctx context.Context, broker string, writable bool) (Plan, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := selectPrimaries(all, Target{Broker: broker}); err != nil {
		return nil, err
	}
	verb := "take the write permission of"
	if writable {
		verb = "give back the write permission of"
	}
	p, err := writableCells.plan(ctx, c, place{NameServers: true}, broker, verb+" broker "+broker, wanted[WritableState]{
		parts: []string{broker},
		make: func(Broker, string, *WritableState) (*WritableState, error) {
			return &WritableState{Writable: writable}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	if !writable {
		p.notes = []Note{
			{"lasts", "until the broker registers a change of its topics or starts again, or the name server starts again"},
			{"lasts", "brokerPermission=4 of the broker's configuration lasts through all of these"},
			{"mind", "a producer that has the old route goes on writing: it asks anew every 30 s, and a broker does not check it"},
		}
	}
	return p, nil
}
