package broker

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/testkit"
	"mqx/message"
	"mqx/remoting"
)

// goldenRounds are the recordings that one Apache broker saw, in that order.
var goldenRounds = [][]string{
	{
		"java_producer_JSON", "java_transaction_JSON", "java_push_broadcast_JSON", "java_push_orderly_JSON", "java_push_sql_JSON",
		"java_lite_pull_JSON", "java_pull_JSON", "go_producer_JSON", "go_push_JSON", "go_broadcast_JSON", "go_orderly_JSON",
		"go_sql_JSON", "go_pull_JSON",
	},
	{"java_push_clustering_JSON", "mqadmin_JSON"},
	{
		"java_producer_ROCKETMQ", "java_push_clustering_ROCKETMQ", "java_push_broadcast_ROCKETMQ", "java_push_orderly_ROCKETMQ",
		"java_lite_pull_ROCKETMQ", "java_pull_ROCKETMQ", "go_producer_ROCKETMQ", "go_push_ROCKETMQ",
	},
}

// TestGoldenConversations replays what clients and tools said to Apache's broker
// and compares the answers: the same code and the same header fields, for all
// that is served. What depends on where delayed, transactional and sent back
// messages lay in the recording is only required to be answered: their own
// golden tests compare that.
func TestGoldenConversations(t *testing.T) {
	for i, files := range goldenRounds {
		t.Run(fmt.Sprint("round", i), func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			cfg.BrokerClusterName, cfg.BrokerName = "WireCluster", "broker-w"
			cfg.TraceTopicEnable = true
			cfg.Store.MaxMessageBytes = 262144
			cfg.AdminThreads = 8
			cfg.EnablePropertyFilter, cfg.RecallMessage = true, true
			ck := clock.NewManual(time.Now())
			cfg.Clock = ck
			rp := &replay{
				clock: ck,
				t:     t, r: start(t, cfg), conns: map[int]*replayConn{}, tainted: map[string]bool{},
				answered: map[int32]int{},
			}
			rp.r.hold.mu.Lock()
			rp.r.hold.unmatched = 100 * time.Millisecond
			rp.r.hold.mu.Unlock()
			for _, name := range files {
				rp.file = name
				rp.run(testkit.GoldenWire(t, name))
			}
			rp.report()
		})
	}
}

// replay is one recording being replayed.
type replay struct {
	t     *testing.T
	r     *running
	clock *clock.Manual
	file  string
	conns map[int]*replayConn
	// tainted topics and groups hold messages in the recording that are not
	// served here: their reads differ.
	tainted  map[string]bool
	answered map[int32]int // answers compared, by request code
	loose    int
}

// replayConn is one connection of the recording.
type replayConn struct {
	nc      net.Conn
	mu      sync.Mutex
	got     map[int32]*remoting.Command // by opaque
	arrived chan struct{}
	answers map[int32][]byte // golden answers of the client, by request code
}

func (rp *replay) dial(id int, listener string) *replayConn {
	addr := rp.r.addr
	if listener == "broker-vip" {
		addr = rp.r.vip
	}
	nc, err := new(net.Dialer).DialContext(rp.t.Context(), "tcp", addr)
	if err != nil {
		rp.t.Fatal(err)
	}
	c := &replayConn{nc: nc, got: map[int32]*remoting.Command{}, arrived: make(chan struct{}, 1), answers: map[int32][]byte{}}
	rp.conns[id] = c
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read()
	}()
	rp.t.Cleanup(func() {
		nc.Close()
		<-done
	})
	return c
}

// read takes what the broker says until the connection ends.
func (c *replayConn) read() {
	head := make([]byte, 4)
	for {
		if _, err := io.ReadFull(c.nc, head); err != nil {
			return
		}
		frame := append(slices.Clone(head), make([]byte, binary.BigEndian.Uint32(head))...)
		if _, err := io.ReadFull(c.nc, frame[4:]); err != nil {
			return
		}
		cmd := &remoting.Command{}
		if err := cmd.Decode(frame); err != nil {
			return
		}
		if !cmd.IsResponse() {
			c.serve(cmd)
			continue
		}
		c.mu.Lock()
		c.got[cmd.Opaque] = cmd
		c.mu.Unlock()
		select {
		case c.arrived <- struct{}{}:
		default:
		}
	}
}

// serve answers a request of the broker as the recorded client did.
func (c *replayConn) serve(cmd *remoting.Command) {
	if cmd.IsOneway() {
		return
	}
	c.mu.Lock()
	body := c.answers[cmd.Code]
	c.mu.Unlock()
	resp := remoting.NewResponse(cmd, remoting.RespSuccess, "")
	resp.Body = body
	if frame, err := resp.AppendFrame(nil, remoting.SerializeJSON); err == nil {
		_, _ = c.nc.Write(frame)
	}
}

// wait waits for the answer to a request, at most as long as d.
func (c *replayConn) wait(opaque int32, d time.Duration) *remoting.Command {
	timeout := time.After(d)
	for {
		c.mu.Lock()
		cmd := c.got[opaque]
		delete(c.got, opaque)
		c.mu.Unlock()
		if cmd != nil {
			return cmd
		}
		select {
		case <-c.arrived:
		case <-timeout:
			return nil
		}
	}
}

func (rp *replay) run(frames []testkit.WireFrame) {
	requests := map[[2]int]*remoting.Command{}
	for i := range frames {
		f := &frames[i]
		if f.Listener != "broker" && f.Listener != "broker-vip" {
			continue
		}
		if f.Kind == "eof" {
			if c := rp.conns[f.Conn]; c != nil {
				c.nc.Close()
				delete(rp.conns, f.Conn)
			}
			continue
		}
		if f.Kind != "frame" {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, f.Time); err == nil {
			rp.clock.Set(at)
		}
		c := rp.conns[f.Conn]
		if c == nil {
			if f.Dir == "s2c" {
				continue
			}
			c = rp.dial(f.Conn, f.Listener)
		}
		cmd := &remoting.Command{}
		if err := cmd.Decode(f.Raw); err != nil {
			rp.t.Fatalf("%s: frame %d: %v", rp.file, f.Seq, err)
		}
		switch {
		case f.Dir == "c2s" && !cmd.IsResponse():
			rp.learn(cmd)
			requests[[2]int{f.Conn, int(cmd.Opaque)}] = cmd
			rp.lookAhead(frames[i:])
			if _, err := c.nc.Write(f.Raw); err != nil {
				rp.t.Fatalf("%s: frame %d (%s): %v", rp.file, f.Seq, remoting.RequestName(cmd.Code), err)
			}
		case f.Dir == "s2c" && cmd.IsResponse():
			if req := requests[[2]int{f.Conn, int(cmd.Opaque)}]; req != nil {
				rp.compare(c, f.Seq, req, cmd)
			}
		}
	}
}

// lookAhead finds the client's next recorded answers to the broker's requests.
func (rp *replay) lookAhead(frames []testkit.WireFrame) {
	for i := range frames[:min(len(frames), 12)] {
		f := &frames[i]
		if f.Kind != "frame" || f.Dir != "c2s" || f.Type != "response" || f.RequestCode == nil {
			continue
		}
		cmd := &remoting.Command{}
		if cmd.Decode(f.Raw) != nil {
			continue
		}
		if peer := rp.conns[f.Conn]; peer != nil {
			peer.mu.Lock()
			peer.answers[*f.RequestCode] = cmd.Body
			peer.mu.Unlock()
		}
	}
}

// learn notes what of a request makes later answers differ.
func (rp *replay) learn(cmd *remoting.Command) {
	switch cmd.Code {
	case remoting.ReqSendMessage, remoting.ReqSendMessageV2, remoting.ReqSendBatchMessage:
		var h remoting.SendMessageView
		if h.Decode(cmd.Fields, remoting.ShortSendNames(cmd.Code)) != nil {
			return
		}
		if p := scanProps(h.Properties); notServed(&h) || p.delay != nil || p.timer != "" { // delivered later than the replay runs
			rp.tainted[string(h.Topic)] = true
		}
	case remoting.ReqInvokeBrokerToResetOffset: // members learn of it at once here
		rp.tainted[cmd.Fields.String("group")] = true
	case remoting.ReqUpdateAndCreateStaticTopic:
		rp.tainted[cmd.Fields.String("topic")] = true
	case remoting.ReqConsumerSendMsgBack:
		g := cmd.Fields.String("group")
		rp.tainted[message.RetryTopic(g)], rp.tainted[message.DLQTopic(g)] = true, true
	}
}

// notServed reports whether the send promises what is not served yet.
func notServed(h *remoting.SendMessageView) bool {
	p := scanProps(h.Properties)
	return p.lite
}

func names(f remoting.Fields) []string {
	var out []string
	for _, fd := range f {
		if fd.Value != nil {
			out = append(out, string(fd.Key))
		}
	}
	slices.Sort(out)
	return out
}

// compare checks the answer to one request against the recorded one.
func (rp *replay) compare(c *replayConn, seq int, req, want *remoting.Command) {
	name := fmt.Sprintf("%s: frame %d: %s", rp.file, seq, remoting.RequestName(req.Code))
	pull := req.Code == remoting.ReqPullMessage || req.Code == remoting.ReqLitePullMessage
	if pull && want.Code == remoting.RespPullNotFound {
		return // it waited there for as long as it would here
	}
	served := slices.ContainsFunc(services, func(s service) bool { return s.code == req.Code })
	wait := 5 * time.Second
	if rp.isTainted(req) {
		wait = 50 * time.Millisecond
	}
	got := c.wait(req.Opaque, wait)
	switch {
	case rp.isTainted(req):
		rp.loose++
	case got == nil:
		rp.t.Errorf("%s: no answer, Apache says %s %q", name, remoting.ResponseName(want.Code), want.Remark)
	case !served:
		if got.Code == remoting.RespSuccess {
			rp.t.Errorf("%s: SUCCESS for what is not served", name)
		}
		rp.loose++
	case rp.differs(req, want):
		rp.loose++
		if mustRefuse(req) && got.Code == remoting.RespSuccess {
			rp.t.Errorf("%s: SUCCESS for what is not served (%v)", name, names(req.Fields))
		}
	case got.Code != want.Code:
		rp.t.Errorf("%s: %s %q, Apache says %s %q; request %v %.300s", name, remoting.ResponseName(got.Code), got.Remark,
			remoting.ResponseName(want.Code), want.Remark, fieldText(req.Fields), req.Body)
	case !slices.Equal(names(got.Fields), names(want.Fields)):
		rp.t.Errorf("%s: fields %v, Apache has %v", name, names(got.Fields), names(want.Fields))
	case (len(got.Body) == 0) != (len(want.Body) == 0):
		rp.t.Errorf("%s: body of %d bytes, Apache's has %d", name, len(got.Body), len(want.Body))
	default:
		rp.answered[req.Code]++
		rp.compareRecords(name, req, got, want)
	}
}

// compareRecords checks that a pull returned the same messages.
func (rp *replay) compareRecords(name string, req, got, want *remoting.Command) {
	if req.Code != remoting.ReqPullMessage && req.Code != remoting.ReqLitePullMessage || len(want.Body) == 0 {
		return
	}
	text := func(body []byte) (out []string) {
		for _, rec := range records(rp.t, body) {
			out = append(out, fmt.Sprintf("%s/%d/%d %x", rec.Topic, rec.QueueID, rec.QueueOffset, rec.Body))
		}
		return out
	}
	if g, w := text(got.Body), text(want.Body); !slices.Equal(g, w) {
		rp.t.Errorf("%s: messages %v, Apache has %v", name, g, w)
	}
}

func fieldText(f remoting.Fields) string {
	var b strings.Builder
	for _, fd := range f {
		fmt.Fprintf(&b, "%s=%s ", fd.Key, fd.Value)
	}
	return b.String()
}

// isTainted reports whether a request reads what differs.
func (rp *replay) isTainted(req *remoting.Command) bool {
	topic, group := req.Fields.String("topic"), req.Fields.String("consumerGroup")
	switch req.Code {
	case remoting.ReqPullMessage, remoting.ReqLitePullMessage, remoting.ReqQueryConsumerOffset, remoting.ReqGetMaxOffset,
		remoting.ReqSearchOffsetByTimestamp, remoting.ReqGetTopicStatsInfo, remoting.ReqGetTopicConfig:
		return rp.tainted[topic] || rp.tainted[group]
	}
	return false
}

// differs lists what is answered in another way on purpose.
func (rp *replay) differs(req, want *remoting.Command) bool {
	switch req.Code {
	case remoting.ReqSendMessage, remoting.ReqSendMessageV2, remoting.ReqSendBatchMessage:
		var h remoting.SendMessageView
		return h.Decode(req.Fields, remoting.ShortSendNames(req.Code)) == nil && notServed(&h)
	case remoting.ReqViewMessageByID, remoting.ReqConsumerSendMsgBack:
		return true // the recorded physical offsets are not ours
	case remoting.ReqViewBrokerStatsData:
		return want.Code == remoting.RespSuccess // counts of another minute, or of topics nothing goes to here
	case remoting.ReqPullMessage:
		// Apache's pools let a pull pass the heartbeat before it.
		return want.Code == remoting.RespSubscriptionNotLatest
	}
	return false
}

// mustRefuse reports whether a request asks for what is not served.
func mustRefuse(req *remoting.Command) bool {
	var h remoting.SendMessageView
	return h.Decode(req.Fields, remoting.ShortSendNames(req.Code)) == nil && notServed(&h)
}

func (rp *replay) report() {
	n := 0
	for _, c := range rp.answered {
		n += c
	}
	rp.t.Logf("%d answers equal in code and fields, %d compared loosely", n, rp.loose)
	if n < 100 {
		rp.t.Errorf("only %d answers were compared", n)
	}
}
