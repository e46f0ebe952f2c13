package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"mqx/admin/move"
	"mqx/internal/fastjson"
	"mqx/remoting"
)

// Do carries one command of a plan out: it looks, does nothing where it is so already,
// refuses where it is neither as it was nor as it should be, changes and reads back.
func (m *moveCluster) Do(ctx context.Context, _ *move.State, cmd *move.Command) error {
	c := m.c
	if cmd.Kind == move.SetOrder {
		return c.moveOrder(ctx, cmd)
	}
	masters, err := c.masters(ctx, []string{cmd.Broker})
	if err != nil {
		return err
	}
	if cmd.Kind == move.CleanRoute {
		return c.cleanRoute(ctx, cmd)
	}
	if len(masters) == 0 {
		return fmt.Errorf("cannot %s: broker %s has no master", cmd.Kind, cmd.Broker)
	}
	b := masters[0]
	switch cmd.Kind {
	case move.CreateGroup:
		err = c.moveGroup(ctx, b, cmd)
	case move.SetTopic:
		err = c.moveTopicTo(ctx, b, cmd)
	case move.SetOffset:
		err = c.moveOffset(ctx, b, cmd)
	case move.SetMode:
		err = c.moveMode(ctx, b, cmd)
	case move.SetBrokerPerm:
		err = c.moveBrokerPerm(ctx, b, cmd)
	case move.DeleteTopic:
		err = c.moveDelete(ctx, b, cmd)
	case move.SetOrder, move.CleanRoute:
	}
	var changed *move.ChangedError
	if err != nil && !errors.As(err, &changed) {
		return fmt.Errorf("cannot %s: %w", cmd, b.fail(err))
	}
	return err
}

// topicNow is a topic on a broker, nil where it is not.
func (c *Client) topicNow(ctx context.Context, b Broker, topic string) (*move.Topic, error) {
	tc, err := c.topicConfig(ctx, b.Addr, topic)
	if hasCode(err, remoting.RespTopicNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := moveTopic(tc)
	return &t, nil
}

func (c *Client) moveTopicTo(ctx context.Context, b Broker, cmd *move.Command) error {
	now, err := c.topicNow(ctx, b, cmd.Topic)
	switch {
	case err != nil:
		return err
	case now.Same(cmd.To):
		return nil
	case !now.Same(cmd.Was):
		return &move.ChangedError{Command: *cmd, Found: now.String()}
	}
	if err := c.endsAt(ctx, b, cmd); err != nil {
		return err
	}
	req := createRequest(attributeChanges(now, cmd.To), &TopicBroker{
		ReadQueues: int(cmd.To.Read), WriteQueues: int(cmd.To.Write), Perm: int(cmd.To.Perm), SysFlag: int(cmd.To.SysFlag), Order: cmd.To.Order,
	}, cmd.Topic)
	if _, err := c.ask(ctx, b.Addr, req); err != nil {
		return err
	}
	if now, err = c.topicNow(ctx, b, cmd.Topic); err != nil {
		return fmt.Errorf("cannot read back: %w", err)
	}
	if !now.Same(cmd.To) {
		return fmt.Errorf("read back %s", now)
	}
	return nil
}

// attributeChanges are the changes that make the attributes of a topic, which may not be there yet, those of another.
func attributeChanges(now, to *move.Topic) map[string]string {
	out := map[string]string{}
	var have map[string]string
	if now != nil {
		have = now.Attributes
	}
	for k, v := range to.Attributes {
		if old, ok := have[k]; !ok || old != v {
			out["+"+k] = v
		}
	}
	for k := range have {
		if _, ok := to.Attributes[k]; !ok {
			out["-"+k] = ""
		}
	}
	return out
}

// endsAt refuses a command where a queue does not end where the plan says, or where nobody knows where it ends.
func (c *Client) endsAt(ctx context.Context, b Broker, cmd *move.Command) error {
	if cmd.Max == nil {
		return nil
	}
	ranges, err := c.rangesOn(ctx, b, cmd.Topic)
	if err != nil {
		return err
	}
	if ranges == nil {
		ranges = map[int32]move.Range{}
	}
	if cmd.Was != nil && max(cmd.Was.Read, cmd.Was.Write) == 0 {
		shut, err := c.shutQueues(ctx, b, cmd.Topic, int32(len(cmd.Max)))
		if err != nil {
			return err
		}
		for q, r := range shut {
			ranges[int32(q)] = r
		}
	}
	for q, end := range cmd.Max {
		if cmd.To != nil && int32(q) < cmd.To.Read {
			continue // it is written on
		}
		r, ok := ranges[int32(q)]
		if !ok {
			return fmt.Errorf("the broker does not tell where queue %d of topic %s ends: it should be at %d", q, cmd.Topic, end)
		}
		if r.Max != end {
			return &move.ChangedError{Command: *cmd, Found: fmt.Sprintf("queue %d ends at %d and not at %d", q, r.Max, end)}
		}
	}
	return nil
}

func (c *Client) moveGroup(ctx context.Context, b Broker, cmd *move.Command) error {
	have, err := c.groupTable(ctx, b.Addr)
	if err != nil {
		return err
	}
	if _, ok := have[cmd.Group]; ok {
		return nil
	}
	sources, err := c.masters(ctx, []string{cmd.Source})
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("broker %s has no master", cmd.Source)
	}
	from, err := c.groupTable(ctx, sources[0].Addr)
	if err != nil {
		return err
	}
	cfg, ok := from[cmd.Group]
	if !ok {
		return nil // it was deleted meanwhile
	}
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateSubscriptionGroup, nil)
	if req.Body, err = fastjson.MarshalStandard(&cfg); err != nil {
		return err
	}
	if _, err := c.ask(ctx, b.Addr, req); err != nil {
		return err
	}
	if have, err = c.groupTable(ctx, b.Addr); err != nil {
		return fmt.Errorf("cannot read back: %w", err)
	}
	if _, ok := have[cmd.Group]; !ok {
		return errors.New("it is not there afterwards")
	}
	return nil
}

func (c *Client) moveOffset(ctx context.Context, b Broker, cmd *move.Command) error {
	there := func() (bool, error) {
		t, err := c.offsets(ctx, b.Addr)
		if err != nil {
			return false, err
		}
		_, ok := t.committed[offsetKey(cmd.Topic, cmd.Group)][cmd.Queue]
		return ok, nil
	}
	if ok, err := there(); err != nil || ok {
		return err
	}
	if _, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetHeader{
		ConsumerGroup: cmd.Group, Topic: cmd.Topic, QueueID: cmd.Queue, CommitOffset: 0,
	})); err != nil {
		return err
	}
	if ok, err := there(); err != nil || !ok {
		return errors.Join(errors.New("it is not there afterwards"), err)
	}
	return nil
}

func (c *Client) moveMode(ctx context.Context, b Broker, cmd *move.Command) error {
	now, err := c.requestModes(ctx, b.Addr)
	if err != nil {
		return err
	}
	if _, told := now[cmd.Topic][cmd.Group]; told {
		return nil
	}
	req := remoting.NewRequest(remoting.ReqSetMessageRequestMode, nil)
	if req.Body, err = fastjson.Marshal(&remoting.MessageRequestMode{
		ConsumerGroup: cmd.Group, Mode: cmd.Mode.Name, PopShareQueueNum: cmd.Mode.Share, Topic: cmd.Topic,
	}); err != nil {
		return err
	}
	if _, err := c.ask(ctx, b.Addr, req); err != nil {
		return err
	}
	if now, err = c.requestModes(ctx, b.Addr); err != nil {
		return fmt.Errorf("cannot read back: %w", err)
	}
	if got := now[cmd.Topic][cmd.Group]; got.Mode != cmd.Mode.Name || got.PopShareQueueNum != cmd.Mode.Share {
		return fmt.Errorf("read back %s, share %d", got.Mode, got.PopShareQueueNum)
	}
	return nil
}

// requestModes are how groups get the messages of topics, by topic and group; none at a broker of before 5.0.
func (c *Client) requestModes(ctx context.Context, addr string) (map[string]map[string]remoting.MessageRequestMode, error) {
	body, err := askBody[remoting.MessageRequestModes](ctx, c, addr, remoting.NewRequest(remoting.ReqGetAllMessageRequestMode, nil))
	if hasCode(err, remoting.RespRequestCodeNotSupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return body.Map, nil
}

func (c *Client) moveBrokerPerm(ctx context.Context, b Broker, cmd *move.Command) error {
	perm := func() (string, error) {
		props, err := c.brokerProps(ctx, b.Addr)
		return props["brokerPermission"], err
	}
	now, err := perm()
	was, to := strconv.Itoa(int(cmd.PermWas)), strconv.Itoa(int(cmd.PermTo))
	switch {
	case err != nil:
		return err
	case now == to:
		return nil
	case now != was:
		return &move.ChangedError{Command: *cmd, Found: now}
	}
	req := remoting.NewRequest(remoting.ReqUpdateBrokerConfig, nil)
	req.Body = []byte("brokerPermission=" + to + "\n")
	if _, err := c.ask(ctx, b.Addr, req); err != nil {
		return err
	}
	if now, err = perm(); err != nil {
		return fmt.Errorf("cannot read back: %w", err)
	}
	if now != to {
		return fmt.Errorf("read back %s", now)
	}
	return nil
}

func (c *Client) moveDelete(ctx context.Context, b Broker, cmd *move.Command) error {
	now, err := c.topicNow(ctx, b, cmd.Topic)
	switch {
	case err != nil:
		return err
	case now == nil:
		return nil
	case !now.Same(cmd.Was):
		return &move.ChangedError{Command: *cmd, Found: now.String()}
	}
	if err := c.endsAt(ctx, b, cmd); err != nil {
		return err
	}
	if _, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: cmd.Topic})); err != nil {
		return err
	}
	if now, err = c.topicNow(ctx, b, cmd.Topic); err != nil {
		return fmt.Errorf("cannot read back: %w", err)
	}
	if now != nil {
		return errors.New("the topic is still there")
	}
	return nil
}

// moveOrder sets the order configuration of a topic at every name server.
func (c *Client) moveOrder(ctx context.Context, cmd *move.Command) error {
	var changed error
	errs := c.each(servers(c.ns.All()), func(mu *sync.Mutex, s Broker) error {
		err := c.moveOrderAt(ctx, s.Addr, cmd)
		var refused *move.ChangedError
		if errors.As(err, &refused) {
			mu.Lock()
			defer mu.Unlock()
			changed = refused
		}
		return err
	})
	switch {
	case changed != nil:
		return changed
	case len(errs) > 0:
		return fmt.Errorf("cannot %s: %w", cmd, errs[0])
	}
	return nil
}

func (c *Client) moveOrderAt(ctx context.Context, addr string, cmd *move.Command) error {
	same := func(value string, ok bool, want *string) bool {
		return want == nil && !ok || want != nil && ok && value == *want
	}
	value, ok, err := c.orderConfig(ctx, addr, cmd.Topic)
	switch {
	case err != nil:
		return err
	case same(value, ok, cmd.OrderTo):
		return nil
	case !same(value, ok, cmd.OrderWas):
		return &move.ChangedError{Command: *cmd, Found: value}
	}
	req := remoting.NewRequest(remoting.ReqDeleteKVConfig, &remoting.DeleteKVConfigHeader{Namespace: orderNamespace, Key: cmd.Topic})
	if cmd.OrderTo != nil {
		req = remoting.NewRequest(remoting.ReqPutKVConfig, &remoting.PutKVConfigHeader{Namespace: orderNamespace, Key: cmd.Topic, Value: *cmd.OrderTo})
	}
	if _, err := c.ask(ctx, addr, req); err != nil {
		return err
	}
	if value, ok, err = c.orderConfig(ctx, addr, cmd.Topic); err != nil {
		return fmt.Errorf("cannot read back: %w", err)
	}
	if !same(value, ok, cmd.OrderTo) {
		return fmt.Errorf("read back %q", value)
	}
	return nil
}

// cleanRoute takes a topic of one broker out of the routes. There is no request for that:
// the topic is deleted for the cluster and what others have of it is put back at once.
// Apache's name server keeps what a broker no longer registers; mqx's forgets it by itself.
func (c *Client) cleanRoute(ctx context.Context, cmd *move.Command) error {
	errs := c.each(servers(c.ns.All()), func(_ *sync.Mutex, s Broker) error {
		r, err := askBody[remoting.TopicRouteData](ctx, c, s.Addr, remoting.NewRequest(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoHeader{Topic: cmd.Topic}))
		if hasCode(err, remoting.RespTopicNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		cluster := ""
		for _, b := range r.BrokerDatas {
			if b.BrokerName == cmd.Broker {
				cluster = b.Cluster
			}
		}
		rest := slices.DeleteFunc(slices.Clone(r.QueueDatas), func(q remoting.QueueData) bool { return q.BrokerName == cmd.Broker })
		if len(rest) == len(r.QueueDatas) {
			return nil
		}
		if _, err := c.ask(ctx, s.Addr, remoting.NewRequest(remoting.ReqDeleteTopicInNamesrv, &remoting.DeleteTopicFromNamesrvHeader{Topic: cmd.Topic, ClusterName: cluster})); err != nil {
			return err
		}
		if len(rest) == 0 {
			return nil
		}
		req := remoting.NewRequest(remoting.ReqRegisterTopicInNamesrv, &remoting.RegisterTopicHeader{Topic: cmd.Topic})
		if req.Body, err = fastjson.MarshalStandard(&remoting.TopicRouteData{QueueDatas: rest, BrokerDatas: []remoting.BrokerData{}, FilterServerTable: map[string][]string{}}); err != nil {
			return err
		}
		_, err = c.ask(ctx, s.Addr, req)
		return err
	})
	if len(errs) > 0 {
		return fmt.Errorf("cannot %s: %w", cmd, errs[0])
	}
	return nil
}
