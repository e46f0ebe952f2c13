package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/server"
)

// Bounds of what is asked of other brokers for static topics.
const (
	// maxAway bounds the requests that wait for another broker: more are refused as "busy".
	maxAway = 512
	// addrsAgain is the least time between two questions for the addresses of brokers.
	addrsAgain = time.Second
)

// elsewhere asks other brokers for what they have of static topics. Safe to share.
type elsewhere struct {
	b    *Broker
	room chan struct{} // a place for each request that waits
	wg   sync.WaitGroup
	mu   struct {
		sync.Mutex
		addrs map[string]string // by broker name
		asked time.Time
	}
}

func newElsewhere(b *Broker) *elsewhere { return &elsewhere{b: b, room: make(chan struct{}, maxAway)} }

// away runs f, which answers r, on a goroutine of its own, since it waits for another broker; ctx ends with forwardTimeout.
// What r's fields and body held before is invalid in f.
func (e *elsewhere) away(r *server.Request, f func(ctx context.Context)) {
	select {
	case e.room <- struct{}{}:
	default:
		r.Reply(remoting.RespSystemBusy, "too many requests wait for other brokers of static topics")
		return
	}
	r.Detach()
	e.wg.Add(1)
	go func() {
		defer e.wg.Done()
		defer func() { <-e.room }()
		ctx, cancel := context.WithTimeout(e.b.ctx, e.b.cfg().ForwardTimeout)
		defer cancel()
		f(ctx)
	}()
}

// ask sends a request about a physical queue to the broker of a name. The answer's code is not looked at.
func (e *elsewhere) ask(ctx context.Context, broker string, code int32, fields remoting.Fields) (*remoting.Command, error) {
	addr, err := e.addr(ctx, broker)
	if err != nil {
		return nil, err
	}
	req := remoting.NewRequest(code, nil)
	req.Fields = fields
	req.Fields.Set("lo", "false")
	req.Fields.Set("bname", broker)
	resp, err := e.b.client.Call(ctx, addr, req)
	if err != nil {
		e.forget(broker)
		return nil, fmt.Errorf("cannot ask broker %q (%s): %w", broker, addr, err)
	}
	return resp, nil
}

// number asks for one number about a physical queue.
func (e *elsewhere) number(ctx context.Context, broker string, code int32, fields remoting.Fields, key string) (int64, error) {
	resp, err := e.ask(ctx, broker, code, fields)
	if err != nil {
		return 0, err
	}
	if resp.Code != remoting.RespSuccess {
		return 0, fmt.Errorf("cannot ask broker %q: %s answered %s: %s", broker, remoting.RequestName(code), remoting.ResponseName(resp.Code), resp.Remark)
	}
	n, ok, err := resp.Fields.Int64(key)
	if err == nil && !ok {
		err = &remoting.MissingFieldError{Field: key}
	}
	return n, err
}

// stats asks for the ends of a topic's queues at a broker.
func (e *elsewhere) stats(ctx context.Context, broker string, fields remoting.Fields) (*remoting.TopicStatsTable, error) {
	resp, err := e.ask(ctx, broker, remoting.ReqGetTopicStatsInfo, fields)
	if err != nil {
		return nil, err
	}
	if resp.Code != remoting.RespSuccess {
		return nil, fmt.Errorf("cannot ask broker %q: %s: %s", broker, remoting.ResponseName(resp.Code), resp.Remark)
	}
	var out remoting.TopicStatsTable
	return &out, fastjson.Unmarshal(resp.Body, &out)
}

// addr is the address of the broker of a name: of its master.
func (e *elsewhere) addr(ctx context.Context, broker string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.b.now()
	addr, ok := e.mu.addrs[broker]
	if since := now.Sub(e.mu.asked); ok && since < e.b.cfg().RoutePollEvery {
		return addr, nil
	} else if !ok && since < addrsAgain {
		return "", fmt.Errorf("cannot ask broker %q: no name server knows it", broker)
	}
	all, err := e.lookUp(ctx)
	switch {
	case err == nil:
		e.mu.addrs, e.mu.asked = all, now
	case ok:
		return addr, nil // as it was
	default:
		return "", fmt.Errorf("cannot ask broker %q: %w", broker, err)
	}
	if addr, ok = all[broker]; !ok {
		return "", fmt.Errorf("cannot ask broker %q: no name server knows it", broker)
	}
	return addr, nil
}

// forget lets the address of a broker that does not answer be looked up again.
func (e *elsewhere) forget(broker string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.mu.addrs, broker)
}

// lookUp asks the name servers, one after the other, for all brokers.
func (e *elsewhere) lookUp(ctx context.Context) (map[string]string, error) {
	errs := []error{errors.New("no name server tells of the brokers")}
	for _, ns := range slices.Sorted(maps.Keys(e.b.registrar.Servers())) {
		resp, err := e.b.client.Call(ctx, ns, remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var info remoting.ClusterInfo
		if resp.Code != remoting.RespSuccess {
			errs = append(errs, &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: "GET_BROKER_CLUSTER_INFO", Addr: ns})
			continue
		}
		if err := fastjson.Unmarshal(resp.Body, &info); err != nil {
			errs = append(errs, err)
			continue
		}
		out := map[string]string{}
		for name, d := range info.BrokerAddrTable {
			if addr := d.BrokerAddrs[0]; addr != "" { // a slave may be behind: its end is none
				out[name] = addr
			}
		}
		return out, nil
	}
	return nil, errors.Join(errs...)
}

// queueFields are the fields that name a physical queue.
func queueFields(topic string, queue int32) remoting.Fields {
	var f remoting.Fields
	f.Set("topic", topic)
	f.SetInt("queueId", int64(queue))
	return f
}

// offsetFields are those that name the place of a group in a physical queue.
func offsetFields(group, topic string, queue int32) remoting.Fields {
	f := queueFields(topic, queue)
	f.Set("consumerGroup", group)
	return f
}
