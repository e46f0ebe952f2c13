package admin

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mqx/client"
	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// Found is the answer to a search for messages.
type Found struct {
	Messages []*client.Received // by store time, broker, queue, offset
	Asked    []Broker           // who was asked, by name: those that failed too
	Errors   []TargetError
	// More: some broker gave as many as were asked for, and may have others.
	More bool
}

// MessageNotFoundError says that no broker has a message, and who was asked.
type MessageNotFoundError struct {
	What  string // "message 7F00… of topic ORDERS"
	Asked []Broker
}

// Error names what was looked for.
func (e *MessageNotFoundError) Error() string { return e.What + " not found" }

// Where names the brokers that were asked, with their addresses.
func (e *MessageNotFoundError) Where() string {
	if len(e.Asked) == 0 {
		return "no broker could be asked"
	}
	return "asked " + brokerText(e.Asked)
}

func brokerText(brokers []Broker) string {
	var parts []string
	for _, b := range brokers {
		parts = append(parts, b.Name+" ("+b.Addr+")")
	}
	return strings.Join(parts, ", ")
}

// messaging is the configuration of a messaging client for the same cluster.
func (c *Client) messaging() client.Config {
	return client.Config{
		NameServers: c.ns.All(), Credentials: c.cfg.Credentials, TLS: c.cfg.TLS, Timeout: c.cfg.BrokerTimeout,
		ConnectTimeout: c.cfg.BrokerTimeout, Logger: c.cfg.Logger,
	}
}

// KeyQuery is a question to the index of the brokers of a topic.
type KeyQuery struct {
	Topic string
	// RouteTopic is the topic whose route shows the brokers, default Topic: light queues have none of their own.
	RouteTopic string
	Target     Target
	Brokers    []string // only these, by name or address; empty: all
	Key        string
	Unique     bool      // Key is a unique id and not an application's key
	Begin, End time.Time // of storing; zero: without a bound
	Max        int       // at each broker, default 64
}

// DefaultQueryMax is the number of messages that a broker is asked for by key.
const DefaultQueryMax = 64

const uniqueKeyField = "_UNIQUE_KEY_QUERY"

// FindByKey asks every broker of the topic. Of what comes only messages are taken that have topic and key: an index
// holds hashes (docs/format/index.md). Nothing found is an empty answer.
func (c *Client) FindByKey(ctx context.Context, q KeyQuery) (*Found, error) {
	if q.Key == "" {
		return nil, errors.New("cannot look for a message: the key is empty")
	}
	if err := message.ValidateTopic(q.Topic); err != nil {
		return nil, err
	}
	brokers, err := c.topicBrokers(ctx, cmp.Or(q.RouteTopic, q.Topic))
	if err != nil {
		return nil, err
	}
	if brokers, err = narrowed(brokers, q.Target); err != nil {
		return nil, err
	}
	if brokers, err = among(brokers, q.Brokers); err != nil {
		return nil, err
	}
	f := &Found{Asked: sortBrokers(brokers)}
	f.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		ms, err := c.queryIndex(ctx, b, q)
		mu.Lock()
		defer mu.Unlock()
		f.Messages = append(f.Messages, ms...)
		f.More = f.More || len(ms) >= q.max()
		return err
	})
	sortMessages(f.Messages)
	return f, nil
}

func (q *KeyQuery) max() int { return cmp.Or(q.Max, DefaultQueryMax) }

// narrowed are the brokers of a target among those given.
func narrowed(brokers []Broker, t Target) ([]Broker, error) {
	out, names, clusters := []Broker(nil), []string(nil), []string(nil)
	for _, b := range brokers {
		names, clusters = append(names, b.Name), append(clusters, b.Cluster)
		if (t.Cluster == "" || b.Cluster == t.Cluster) && (t.Broker == "" || b.Name == t.Broker || b.Addr == t.Broker) {
			out = append(out, b)
		}
	}
	switch {
	case len(out) > 0 || t == Target{}:
		return out, nil
	case t.Broker != "":
		return nil, &NotFoundError{Kind: "broker", Name: t.Broker, Known: names}
	}
	slices.Sort(clusters)
	return nil, &NotFoundError{Kind: "cluster", Name: t.Cluster, Known: slices.Compact(clusters)}
}

// among are those of the brokers that have one of the names or addresses; without any, all. A name that none of them
// has is a *NotFoundError.
func among(brokers []Broker, wanted []string) ([]Broker, error) {
	if len(wanted) == 0 {
		return brokers, nil
	}
	var out []Broker
	for _, w := range wanted {
		some, err := narrowed(brokers, Target{Broker: w})
		if err != nil {
			return nil, err
		}
		for _, b := range some {
			if !slices.Contains(out, b) {
				out = append(out, b)
			}
		}
	}
	return out, nil
}

func sortBrokers(brokers []Broker) []Broker {
	out := slices.Clone(brokers)
	sorted.By(out, func(a, b Broker) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Addr, b.Addr))
	})
	return out
}

func sortMessages(ms []*client.Received) {
	sorted.Stably(ms, func(a, b *client.Received) int {
		return cmp.Or(cmp.Compare(a.StoreTimestamp, b.StoreTimestamp), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Queue.BrokerName, b.Queue.BrokerName),
			cmp.Compare(a.Queue.QueueID, b.Queue.QueueID), cmp.Compare(a.QueueOffset, b.QueueOffset))
	})
}

// queryIndex asks one broker.
func (c *Client) queryIndex(ctx context.Context, b Broker, q KeyQuery) ([]*client.Received, error) {
	h := &remoting.QueryMessageHeader{Topic: q.Topic, Key: q.Key, MaxNum: int32(q.max()), EndTimestamp: 1<<63 - 1}
	if !q.Begin.IsZero() {
		h.BeginTimestamp = q.Begin.UnixMilli()
	}
	if !q.End.IsZero() {
		h.EndTimestamp = q.End.UnixMilli()
	}
	req := remoting.NewRequest(remoting.ReqQueryMessage, h)
	req.Fields.SetBool(uniqueKeyField, q.Unique)
	resp, err := c.ask(ctx, b.Addr, req)
	if hasCode(err, remoting.RespQueryNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ms, err := decodeRecords(resp.Body, b)
	return slices.DeleteFunc(ms, func(m *client.Received) bool {
		if m.Topic != q.Topic {
			return true
		}
		if q.Unique {
			return m.UniqKey() != q.Key
		}
		return !slices.Contains(m.Keys(), q.Key)
	}), err
}

// decodeRecords are the messages of the records that a broker answered.
func decodeRecords(body []byte, b Broker) (out []*client.Received, err error) {
	for m, bad := range message.DecodeMessages(body, message.ReceiveOptions{VerifyBodyCRC: true}) {
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("cannot read what broker %q answered: %w", b.Name, bad))
			continue
		}
		out = append(out, client.NewReceived(m, remoting.MessageQueue{Topic: m.Topic, BrokerName: b.Name, QueueID: m.QueueID}))
	}
	return out, err
}

// noRecordText is in the remark of a broker that has no record at an offset: the code says only that something failed.
const noRecordText = "can not find message by the offset"

// viewRecord is the message whose record begins at a physical offset of a broker; none is nil.
func (c *Client) viewRecord(ctx context.Context, b Broker, topic string, phys int64) ([]*client.Received, error) {
	resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqViewMessageByID, &remoting.ViewMessageHeader{Topic: topic, Offset: phys}))
	if re, ok := errors.AsType[*remoting.ResponseError](err); ok && re.Code == remoting.RespSystemError && strings.Contains(re.Remark, noRecordText) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeRecords(resp.Body, b)
}

// MessageRef names a message.
type MessageRef struct {
	// ID is an offset id or a unique id. Empty: the message is at Offset of Queue of Broker.
	ID     string
	Topic  string // empty only with an ID: all topics are looked through
	Broker string
	Queue  int32
	Offset int64
}

// ParseMessageRef reads an id (32 or 56 hexadecimal digits) or a place, BROKER:QUEUE:OFFSET.
func ParseMessageRef(text, topic string) (MessageRef, error) {
	r := MessageRef{Topic: topic}
	if topic != "" {
		if err := message.ValidateTopic(topic); err != nil {
			return r, err
		}
	}
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		r.ID = strings.ToUpper(text)
		if isProxyID(r.ID) {
			return r, nil
		}
		_, err := message.ParseUniqueID(text)
		return r, err
	}
	queue, err := strconv.ParseInt(parts[1], 10, 32)
	if err == nil {
		r.Offset, err = strconv.ParseInt(parts[2], 10, 64)
	}
	if err != nil || queue < 0 || r.Offset < 0 || parts[0] == "" {
		return r, &message.IDError{Text: text, Why: "a place has the form BROKER:QUEUE:OFFSET"}
	}
	if topic == "" {
		return r, &message.IDError{Text: text, Why: "a place is that of a topic, and none is given"}
	}
	r.Broker, r.Queue = parts[0], int32(queue)
	return r, nil
}

// isProxyID reports whether an id is one of the clients that speak gRPC: version 01, hardware address, process, time
// and counter, in 34 hexadecimal digits.
func isProxyID(id string) bool {
	_, err := hex.DecodeString(id)
	return err == nil && len(id) == 34 && strings.HasPrefix(id, "01")
}

// String is the message as it is named in errors.
func (r MessageRef) String() string {
	s := "message " + r.ID
	if r.ID == "" {
		s = fmt.Sprintf("message %d of queue %d of broker %s", r.Offset, r.Queue, r.Broker)
	}
	if r.Topic != "" {
		s += " of topic " + r.Topic
	}
	return s
}

// GetMessage finds what r names: one message, or with a unique id all records that have it, since a producer that
// tried again stored it twice, and without a topic those of retry topics and dead letters too. None is a
// *MessageNotFoundError, unless some broker did not answer.
func (c *Client) GetMessage(ctx context.Context, r MessageRef) (*Found, error) {
	var f *Found
	var err error
	if r.ID == "" {
		f, err = c.messageAt(ctx, r)
	} else {
		f, err = c.messageByID(ctx, r)
	}
	if err == nil && len(f.Messages)+len(f.Errors) == 0 {
		err = &MessageNotFoundError{What: r.String(), Asked: f.Asked}
	}
	return f, err
}

// messageByID tries both kinds of id: every unique id has the form of an offset id, but for its port, which is rarely
// one. The address in an offset id is no address to connect to: the broker may have another one now, and whoever has
// that address now may be another broker. All brokers are asked for the record, and its own id decides.
func (c *Client) messageByID(ctx context.Context, r MessageRef) (*Found, error) {
	f := &Found{}
	if host, phys, err := message.ParseOffsetID(r.ID); err == nil {
		all, err := c.primaries(ctx, Target{})
		if err != nil {
			return nil, err
		}
		sorted.Stably(all, func(a, b Broker) int {
			return cmp.Compare(btoi(b.Addr == host.String()), btoi(a.Addr == host.String()))
		})
		f.Asked = sortBrokers(all)
		f.Errors = c.each(all, func(mu *sync.Mutex, b Broker) error {
			ms, err := c.viewRecord(ctx, b, r.Topic, phys)
			mu.Lock()
			defer mu.Unlock()
			for _, m := range ms {
				if m.OffsetID == r.ID && (r.Topic == "" || m.Topic == r.Topic) {
					f.Messages = append(f.Messages, m)
				}
			}
			return err
		})
		if len(f.Messages) > 0 {
			f.Errors = nil // there is one such record
			return f, nil
		}
	}
	u, err := c.byUniqueID(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, b := range f.Asked {
		if !slices.Contains(u.Asked, b) {
			u.Asked = append(u.Asked, b)
		}
	}
	for _, e := range f.Errors {
		if !slices.ContainsFunc(u.Errors, func(o TargetError) bool { return o.Addr == e.Addr }) {
			u.Errors = append(u.Errors, e)
		}
	}
	sortErrors(u.Errors)
	return u, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// byUniqueID asks the indexes for the topic, or for every topic that a client can send to or that holds what was sent.
func (c *Client) byUniqueID(ctx context.Context, r MessageRef) (*Found, error) {
	if r.Topic != "" {
		return c.FindByKey(ctx, KeyQuery{Topic: r.Topic, Key: r.ID, Unique: true})
	}
	brokers, err := c.primaries(ctx, Target{})
	if err != nil {
		return nil, err
	}
	own := ownNames(brokers)
	f := &Found{Asked: sortBrokers(brokers)}
	f.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		table, err := c.topicTable(ctx, b.Addr)
		if err != nil {
			return err
		}
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(c.cfg.Parallel)
		for topic := range table {
			if topicKind(topic, own) == KindSystem {
				continue
			}
			g.Go(func() error {
				ms, err := c.queryIndex(gctx, b, KeyQuery{Topic: topic, Key: r.ID, Unique: true})
				mu.Lock()
				defer mu.Unlock()
				f.Messages = append(f.Messages, ms...)
				return err
			})
		}
		return g.Wait()
	})
	sortMessages(f.Messages)
	return f, nil
}

// messageAt is the message at a place. A queue that cannot be read is read all the same: see queueUnits.
func (c *Client) messageAt(ctx context.Context, r MessageRef) (*Found, error) {
	brokers, err := c.topicBrokers(ctx, r.Topic)
	if err != nil {
		return nil, err
	}
	if brokers, err = narrowed(brokers, Target{Broker: r.Broker}); err != nil {
		return nil, err
	}
	f := &Found{Asked: brokers}
	f.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		q := remoting.MessageQueue{Topic: r.Topic, BrokerName: b.Name, QueueID: r.Queue}
		ms, _, err := c.queueUnits(ctx, b, q, r.Offset, 1)
		mu.Lock()
		defer mu.Unlock()
		f.Messages = append(f.Messages, ms...)
		return err
	})
	f.Messages = slices.DeleteFunc(f.Messages, func(m *client.Received) bool { return m.QueueOffset != r.Offset })
	return f, nil
}

// queueUnits reads up to count messages of a queue from an offset by its units and the records they name, which
// works whatever the permission of the topic is. next is where to go on; it is at where the queue has nothing there.
func (c *Client) queueUnits(ctx context.Context, b Broker, q remoting.MessageQueue, at int64, count int32) (ms []*client.Received, next int64, err error) {
	body, err := askBody[remoting.QueryConsumeQueueBody](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqQueryConsumeQueue,
		&remoting.QueryConsumeQueueHeader{Topic: q.Topic, QueueID: q.QueueID, Index: at, Count: count}))
	if err != nil {
		return nil, at, err
	}
	at = max(at, body.MinQueueIndex)
	for i, u := range body.QueueData[:min(len(body.QueueData), int(count))] {
		got, err := c.viewRecord(ctx, b, q.Topic, u.PhysicOffset)
		if err != nil {
			return ms, at + int64(i), err
		}
		for _, m := range got {
			m.Queue = q
			ms = append(ms, m)
		}
	}
	return ms, at + int64(len(body.QueueData)), nil
}
