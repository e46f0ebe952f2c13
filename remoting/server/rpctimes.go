package server

import (
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/meter"
)

// rpcBounds are the classes of Apache's rpc latency, in nanoseconds.
var rpcBounds = func() (out []int64) {
	for _, ms := range []int64{1, 3, 5, 7, 10, 100, 1000, 2000, 3000} {
		out = append(out, ms*int64(time.Millisecond))
	}
	return out
}()

// Results of a request, as Apache's metrics name them.
const (
	ResultSuccess = "success"
	ResultOneway  = "oneway"
	ResultLost    = "write_channel_failed"
)

// RPCKey says which requests a time is of.
type RPCKey struct {
	Code, Response int32
	Parked         bool // it was kept until there was something to answer
	Result         string
}

// RPCTimes holds how long requests took from their arrival to their answer, by code and
// outcome. Several servers may share one. It is safe to share.
type RPCTimes struct {
	// plain are the requests of small codes that were answered SUCCESS at once: nearly all.
	plain [denseCodes]atomic.Pointer[meter.Histogram]
	rest  sync.Map // RPCKey to *meter.Histogram
	size  atomic.Int64
}

// maxRPCKeys bounds what a peer with odd codes can make grow.
const maxRPCKeys = 4096

// oneKey is where what is above the bound is counted.
var oneKey = RPCKey{Code: -1, Response: -1, Result: ResultSuccess}

func (t *RPCTimes) observe(k RPCKey, d time.Duration) {
	if k.Code >= 0 && k.Code < denseCodes && k.Response == 0 && !k.Parked && k.Result == ResultSuccess {
		h := t.plain[k.Code].Load()
		if h == nil {
			t.plain[k.Code].CompareAndSwap(nil, meter.New(rpcBounds))
			h = t.plain[k.Code].Load()
		}
		h.Observe(int64(d), 1)
		return
	}
	v, ok := t.rest.Load(k)
	if !ok {
		if t.size.Load() >= maxRPCKeys {
			k = oneKey
		}
		var known bool
		if v, known = t.rest.LoadOrStore(k, meter.New(rpcBounds)); !known {
			t.size.Add(1)
		}
	}
	v.(*meter.Histogram).Observe(int64(d), 1)
}

// Each calls f for every kind of request that was served, with its times in
// nanoseconds.
func (t *RPCTimes) Each(f func(RPCKey, meter.Reading)) {
	for code := range t.plain {
		if h := t.plain[code].Load(); h != nil {
			f(RPCKey{Code: int32(code), Result: ResultSuccess}, h.Read())
		}
	}
	t.rest.Range(func(k, v any) bool {
		f(k.(RPCKey), v.(*meter.Histogram).Read())
		return true
	})
}

// observe notes how long the request took that is answered with code.
func (r *Request) observe(code int32, err error) {
	t, slow := r.conn.srv.cfg.Times, r.conn.srv.cfg.Slow
	if t == nil && slow == nil {
		return
	}
	took, parked := time.Since(r.received), r.buf != nil && r.buf.gauge == &r.conn.srv.gauges.parked
	if slow != nil && !parked && slow.Is(took) {
		slow.tell(r, code, took)
	}
	if t == nil {
		return
	}
	k := RPCKey{Code: r.Code, Response: code, Result: ResultSuccess, Parked: parked}
	switch {
	case r.IsOneway():
		k.Result = ResultOneway
	case err != nil:
		k.Result = ResultLost
	}
	t.observe(k, took)
}
