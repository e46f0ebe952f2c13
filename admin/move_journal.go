package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/admin/move"
	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

// TopicMoves is the topic that holds the journal of moves: one queue on the broker that a
// plan's id names. Any machine that reaches the cluster can go on with a plan.
const TopicMoves = "MQX_OPS"

// Properties of the journal's messages. The key of a message is the id of its plan.
const (
	propMoveBy       = "MQX_BY"
	propMoveRequest  = "MQX_REQUEST"
	propMoveArgument = "MQX_ARGUMENT"
)

// leaseGroup is the group in whose name the queue of a plan's journal is locked: one for
// each plan. Apache's broker asks for no such group; mqx's does, and it goes with the plan.
func leaseGroup(plan string) string {
	sum := sha256.Sum256([]byte(plan))
	return TopicMoves + "_" + hex.EncodeToString(sum[:8])
}

// moveJournal is the journal of one plan.
type moveJournal struct {
	c        *Client
	plan     string
	host     string
	owner    string
	producer *client.Producer
	// file is the local copy of the newest state, "" for none.
	fs   vfs.FS
	file string
}

// moveHostOf is the broker that an id names.
func moveHostOf(plan string) (string, error) {
	_, host, ok := strings.Cut(plan, "@")
	if !ok || host == "" {
		return "", fmt.Errorf("cannot use plan id %q: it has the form KIND-NAME-TIME@BROKER", plan)
	}
	return host, nil
}

// moveHost is where the journal of a plan is kept: the broker of the smallest name that is
// neither source nor target, else a target, else what there is.
func moveHost(all []Broker, sources, targets []string) (string, error) {
	var free, second, names []string
	for _, b := range all {
		if b.ID != 0 {
			continue
		}
		names = append(names, b.Name)
		switch {
		case slices.Contains(targets, b.Name):
			second = append(second, b.Name)
		case !slices.Contains(sources, b.Name):
			free = append(free, b.Name)
		}
	}
	for _, choice := range [][]string{free, second, names} {
		if len(choice) > 0 {
			return slices.Min(choice), nil
		}
	}
	return "", &NotFoundError{Kind: "broker"}
}

func (c *Client) openJournal(plan, owner string, fsys vfs.FS, file string) (*moveJournal, error) {
	host, err := moveHostOf(plan)
	if err != nil {
		return nil, err
	}
	none := 0
	p, err := client.NewProducer(client.ProducerConfig{Config: c.messaging(), Group: "MQX_OPS_PRODUCER", Retries: &none, CompressOver: -1})
	if err != nil {
		return nil, err
	}
	return &moveJournal{c: c, plan: plan, host: host, owner: owner, producer: p, fs: fsys, file: file}, nil
}

func (j *moveJournal) close() error { return j.producer.Close() }

func (j *moveJournal) master(ctx context.Context) (Broker, error) {
	found, err := j.c.masters(ctx, []string{j.host})
	if err != nil {
		return Broker{}, fmt.Errorf("cannot reach the journal: %w", err)
	}
	if len(found) == 0 {
		return Broker{}, fmt.Errorf("cannot reach the journal: broker %s has no master", j.host)
	}
	return found[0], nil
}

// create makes the topic of the journal where it is not.
func (j *moveJournal) create(ctx context.Context) error {
	b, err := j.master(ctx)
	if err != nil {
		return err
	}
	if now, err := j.c.topicNow(ctx, b, TopicMoves); err != nil || now != nil {
		return err
	}
	_, err = j.c.ask(ctx, b.Addr, createRequest(nil, &TopicBroker{ReadQueues: 1, WriteQueues: 1, Perm: permReadWrite}, TopicMoves))
	if err != nil {
		return fmt.Errorf("cannot create topic %s on %s: %w", TopicMoves, j.host, err)
	}
	return nil
}

func (j *moveJournal) lockBody() ([]byte, error) {
	return fastjson.MarshalStandard(&remoting.LockBatchBody{
		ClientID: j.owner, ConsumerGroup: leaseGroup(j.plan), OnlyThisBroker: true,
		MQSet: []remoting.MessageQueue{{Topic: TopicMoves, BrokerName: j.host, QueueID: 0}},
	})
}

// Renew locks the queue of the journal for this run.
func (j *moveJournal) Renew(ctx context.Context) (bool, error) {
	b, err := j.master(ctx)
	if err != nil {
		return false, err
	}
	resp, err := j.lock(ctx, b)
	if hasCode(err, remoting.RespSubscriptionGroupNotExist) {
		if err = j.createGroup(ctx, b); err == nil {
			resp, err = j.lock(ctx, b)
		}
	}
	if err != nil {
		return false, fmt.Errorf("cannot take the lease of plan %s: %w", j.plan, b.fail(err))
	}
	if len(resp.LockOKMQSet) > 0 {
		return true, nil
	}
	if now, err := j.c.topicNow(ctx, b, TopicMoves); err != nil || now != nil {
		return false, err
	}
	// Somebody deleted the journal: mqx's broker locks no queue that is not there.
	if err := j.create(ctx); err != nil {
		return false, err
	}
	resp, err = j.lock(ctx, b)
	return err == nil && len(resp.LockOKMQSet) > 0, err
}

func (j *moveJournal) lock(ctx context.Context, b Broker) (*remoting.LockBatchResponseBody, error) {
	req := remoting.NewRequest(remoting.ReqLockBatchMQ, &remoting.RPCHeader{})
	var err error
	if req.Body, err = j.lockBody(); err != nil {
		return nil, err
	}
	return askBody[remoting.LockBatchResponseBody](ctx, j.c, b.Addr, req)
}

func (j *moveJournal) createGroup(ctx context.Context, b Broker) error {
	g := remoting.NewSubscriptionGroupConfig(leaseGroup(j.plan))
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
	var err error
	if req.Body, err = fastjson.MarshalStandard(&g); err != nil {
		return err
	}
	_, err = j.c.ask(ctx, b.Addr, req)
	return err
}

// forget deletes the group of the lease, when the plan has ended.
func (j *moveJournal) forget(ctx context.Context) error {
	b, err := j.master(ctx)
	if err != nil {
		return err
	}
	have, err := j.c.groupTable(ctx, b.Addr)
	if err != nil {
		return err
	}
	if _, ok := have[leaseGroup(j.plan)]; !ok {
		return nil
	}
	_, err = j.c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: leaseGroup(j.plan)}))
	return err
}

// release gives the lease back, so that somebody else need not wait for its end.
func (j *moveJournal) release(ctx context.Context) error {
	b, err := j.master(ctx)
	if err != nil {
		return err
	}
	req := remoting.NewRequest(remoting.ReqUnlockBatchMQ, &remoting.RPCHeader{})
	if req.Body, err = j.lockBody(); err != nil {
		return err
	}
	_, err = j.c.ask(ctx, b.Addr, req)
	return err
}

// Read returns the entries of the plan from an offset on.
func (j *moveJournal) Read(ctx context.Context, from int64) ([]move.Entry, move.Span, error) {
	b, err := j.master(ctx)
	if err != nil {
		return nil, move.Span{}, err
	}
	all, span, err := j.c.readMoves(ctx, b, from)
	if err != nil {
		return nil, move.Span{}, fmt.Errorf("cannot read the journal: %w", b.fail(err))
	}
	return slices.DeleteFunc(all, func(e move.Entry) bool { return e.Plan != j.plan }), span, nil
}

// Append adds an entry, and keeps a copy of a state on this machine: before, so that the copy is
// never behind a journal whose answer was lost. What a state says was done when it is written.
func (j *moveJournal) Append(ctx context.Context, e *move.Entry) error {
	body := []byte(e.Request)
	tag := "request"
	if e.State != nil {
		tag = "state"
		var err error
		if body, err = e.State.Encode(); err != nil {
			return err
		}
	}
	if e.State != nil && j.file != "" {
		if err := vfs.WriteFileDurable(j.fs, j.file, body); err != nil {
			return fmt.Errorf("cannot write the copy of the journal %q: %w", j.file, err)
		}
	}
	m := &message.Message{Topic: TopicMoves, Body: body}
	m.SetProperty(message.PropTags, tag)
	m.SetProperty(message.PropKeys, j.plan)
	for name, value := range map[string]string{propMoveBy: e.By, propMoveRequest: string(e.Request), propMoveArgument: e.Argument} {
		if value != "" {
			m.SetProperty(name, value)
		}
	}
	res, err := j.producer.Send(ctx, m, client.SendOptions{HasQueue: true, Broker: j.host})
	if err != nil { // its topic may have been deleted: the next attempt finds it again
		return fmt.Errorf("cannot write the journal: %w", errors.Join(err, j.create(ctx)))
	}
	e.Offset = res.QueueOffset
	return nil
}

// maxMoveRecords bounds how much of a journal is read: the newest state of a plan is all
// that is needed, and every plan writes one twice a day.
const maxMoveRecords = 50_000

// readMoves reads the journal on a broker from an offset on. One that ends before it was deleted
// and begun anew, and is read whole.
func (c *Client) readMoves(ctx context.Context, b Broker, from int64) (out []move.Entry, span move.Span, err error) {
	ranges, err := c.rangesOn(ctx, b, TopicMoves)
	if err != nil {
		return nil, span, err
	}
	r := ranges[0]
	if from > r.Max {
		from = 0
	}
	next := max(from, r.Min, r.Max-maxMoveRecords)
	for next < r.Max {
		ms, after, err := c.pullAt(ctx, b, TopicMoves, 0, next)
		if err != nil {
			return nil, span, err
		}
		for i := range ms {
			e, err := moveEntry(&ms[i])
			if err != nil {
				return nil, span, err
			}
			out = append(out, *e)
		}
		if after <= next {
			break // it is stored and not yet in the queue
		}
		next = after
	}
	return out, move.Span{First: r.Min, Next: next}, nil
}

func moveEntry(m *message.Received) (*move.Entry, error) {
	e := &move.Entry{
		Offset: m.QueueOffset, Plan: m.Property(message.PropKeys), By: m.Property(propMoveBy), At: time.UnixMilli(m.StoreTimestamp),
		Request: move.Request(m.Property(propMoveRequest)), Argument: m.Property(propMoveArgument),
	}
	if m.Tags() != "state" {
		return e, nil
	}
	st, err := move.Decode(m.Body)
	if err != nil {
		return nil, fmt.Errorf("record %d of topic %s: %w", m.QueueOffset, TopicMoves, err)
	}
	e.State = st
	return e, nil
}

// Moved is a plan as the journal has it.
type Moved struct {
	State   *move.State
	Host    string
	Written time.Time // when its newest state was written
}

// Moves lists the plans in the journals of all brokers, the newest first.
func (c *Client) Moves(ctx context.Context) ([]Moved, []TargetError, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(b Broker) bool { return b.ID != 0 })
	var out []Moved
	errs := c.each(all, func(mu *sync.Mutex, b Broker) error {
		entries, _, err := c.readMoves(ctx, b, 0)
		if err != nil {
			return err
		}
		plans := map[string][]move.Entry{}
		for _, e := range entries {
			plans[e.Plan] = append(plans[e.Plan], e)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, es := range plans {
			st := move.Latest(es)
			if st == nil {
				continue
			}
			m := Moved{State: st, Host: b.Name}
			for _, e := range es {
				if e.State != nil && e.At.After(m.Written) {
					m.Written = e.At
				}
			}
			out = append(out, m)
		}
		return nil
	})
	sorted.By(out, func(a, b Moved) int {
		if n := b.Written.Compare(a.Written); n != 0 {
			return n
		}
		return strings.Compare(a.State.ID, b.State.ID)
	})
	return out, errs, nil
}

// MoveCopy reads the copy of a plan on this machine; move.ErrNoPlan when there is none.
func MoveCopy(fsys vfs.FS, file string) (*move.State, error) {
	b, err := vfs.ReadFile(fsys, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, move.ErrNoPlan
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the copy of the journal %q: %w", file, err)
	}
	return move.Decode(b)
}
