package client

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// Opaques of a load have ten digits, so that a frame template keeps its length.
const (
	firstOpaque = 1_000_000_000
	opaqueSpan  = 1_000_000_000
)

// template is a whole request frame in which few places change: they are found once,
// by what stands there in the template, and overwritten in place for each request.
type template struct {
	frame  []byte
	opaque int // of ten digits, or of four bytes in a binary header
	binary bool
	places []int // of what the maker marked, in the order of marks
}

// newTemplate encodes req and finds the marks in it; each must occur once.
func newTemplate(req *remoting.Command, s remoting.Serialize, marks ...[]byte) (*template, error) {
	req.Opaque = firstOpaque
	frame, err := req.AppendFrame(nil, s)
	if err != nil {
		return nil, err
	}
	t := &template{frame: frame, binary: s == remoting.SerializeROCKETMQ}
	headerEnd := 8 + int(frame[5])<<16 + int(frame[6])<<8 + int(frame[7])
	if t.binary {
		t.opaque = 8 + 5
	} else if t.opaque, err = find(frame[:headerEnd], []byte(`"opaque":`+strconv.Itoa(firstOpaque))); err != nil {
		return nil, err
	} else {
		t.opaque += len(`"opaque":`)
	}
	for _, m := range marks {
		at, err := find(frame, m)
		if err != nil {
			return nil, err
		}
		t.places = append(t.places, at)
	}
	return t, nil
}

func find(b, what []byte) (int, error) {
	at := bytes.Index(b, what)
	if at < 0 || bytes.Contains(b[at+1:], what) {
		return 0, fmt.Errorf("cannot make request template: %q does not stand there once", what)
	}
	return at, nil
}

// appendTo appends the frame with an opaque and returns where it starts.
func (t *template) appendTo(dst []byte, opaque int32) (out []byte, start int) {
	start = len(dst)
	out = append(dst, t.frame...)
	if t.binary {
		binary.BigEndian.PutUint32(out[start+t.opaque:], uint32(opaque))
	} else {
		putDigits(out[start+t.opaque:start+t.opaque+10], int64(opaque))
	}
	return out, start
}

// putDigits fills b with the digits of n, leading zeros included.
func putDigits(b []byte, n int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// sendPlan makes send requests to one queue.
type sendPlan struct {
	*template
	born   int   // 13 digits
	keys   []int // places of unique ids: of the header, or of each batch item
	bodies []int
	size   int // of a body
}

var (
	bornMark = []byte("1111111111111")
	keyMark  = func(n int) []byte {
		return fmt.Appendf(nil, "%0*dUNIQUEKEYMARK", message.IDLenV4-len("UNIQUEKEYMARK"), n)
	}
)

// newSendPlan makes the template of sends to a queue, exactly as a client of this
// package would send them.
func newSendPlan(cfg *LoadConfig, group string, q remoting.MessageQueue) (*sendPlan, error) {
	wait := strconv.FormatBool(cfg.WaitStore)
	h := &remoting.SendMessageHeader{
		ProducerGroup: group, Topic: q.Topic, DefaultTopic: message.TopicAutoCreate, DefaultTopicQueueNums: DefaultTopicQueues,
		QueueID: q.QueueID, BornTimestamp: 1111111111111, Batch: cfg.Batch > 1,
	}
	h.BName = q.BrokerName
	if cfg.Transaction {
		h.SysFlag = message.TransactionPrepared
	}
	props := func(n int) []byte {
		p := message.AppendProperty(message.AppendProperty(nil, message.PropUniqKey, string(keyMark(n))), message.PropWait, wait)
		if cfg.Transaction {
			p = message.AppendProperty(message.AppendProperty(p, message.PropTranMsg, message.TrueValue), message.PropProducerGroup, group)
		}
		if cfg.DelayLevel > 0 {
			p = message.AppendProperty(p, message.PropDelay, strconv.Itoa(cfg.DelayLevel))
		}
		if cfg.Delay > 0 {
			p = message.AppendProperty(p, message.PropTimerDelayMs, strconv.FormatInt(cfg.Delay.Milliseconds(), 10))
		}
		return p
	}
	marks := [][]byte{bornMark, keyMark(0)}
	h.Properties = string(props(0))
	code := remoting.ReqSendMessageV2
	body := make([]byte, cfg.BodySize)
	fillBody(body)
	var out []byte
	if cfg.Batch > 1 {
		code = remoting.ReqSendBatchMessage
		for i := range cfg.Batch {
			out = message.AppendBatchItem(out, 0, body, props(i+1))
			marks = append(marks, keyMark(i+1))
		}
	} else {
		out = body
	}
	req := remoting.NewRequest(code, h)
	req.Body = out
	t, err := newTemplate(req, cfg.Serialize, marks...)
	if err != nil {
		return nil, err
	}
	p := &sendPlan{template: t, born: t.places[0], keys: t.places[1:], size: cfg.BodySize}
	at := len(t.frame) - len(out)
	if cfg.Batch == 1 {
		p.bodies = []int{at}
		return p, nil
	}
	itemLen := message.BatchItemOverhead + cfg.BodySize + len(props(0))
	for i := range cfg.Batch {
		p.bodies = append(p.bodies, at+i*itemLen+message.BatchItemOverhead-2)
	}
	return p, nil
}

// pullPlan makes pull requests for one queue.
type pullPlan struct {
	*template
	offset int // 19 digits
}

func newPullPlan(cfg *LoadConfig, q remoting.MessageQueue) (*pullPlan, error) {
	const mark = 1234567890123456789
	h := &remoting.PullMessageHeader{
		ConsumerGroup: message.GroupTools, Topic: q.Topic, QueueID: q.QueueID, QueueOffset: mark, MaxMsgNums: int32(cfg.Batch),
		SysFlag: pullSubscription, Subscription: "*", ExpressionType: remoting.ExpressionTag, SubVersion: cfg.Clock.Now().UnixMilli(),
		MaxMsgBytes: int32(min(int64(cfg.Batch)*(1<<20), 8<<20)), TopicHeader: topicHeader(q),
	}
	t, err := newTemplate(remoting.NewRequest(remoting.ReqPullMessage, h), cfg.Serialize, []byte(strconv.Itoa(mark)))
	if err != nil {
		return nil, err
	}
	return &pullPlan{template: t, offset: t.places[0]}, nil
}

// sign adds the signature to a finished frame, which then has another length. It costs
// a decode and an encode; loads without credentials do not come here.
func sign(frame []byte, s remoting.Serialize, cred *remoteclient.Credentials) ([]byte, error) {
	c := &remoting.Command{}
	if err := c.DecodeReply(frame); err != nil {
		return nil, err
	}
	if cred.Token != "" {
		remoting.SignToken(c, cred.AccessKey, cred.SecretKey, cred.Token)
	} else {
		remoting.Sign(c, cred.AccessKey, cred.SecretKey)
	}
	return c.AppendFrame(nil, s)
}

// answerHead reads code and opaque of an answer's frame. The headers that brokers write
// are read by looking at two places; all others take the long way.
func answerHead(frame []byte, scratch *remoting.Command) (code, opaque int32, header, body []byte, err error) {
	headerLen := int(frame[5])<<16 | int(frame[6])<<8 | int(frame[7])
	if len(frame) < 8+headerLen {
		return 0, 0, nil, nil, remoting.ErrFrameTooShort
	}
	header, body = frame[8:8+headerLen], frame[8+headerLen:]
	if remoting.Serialize(frame[4]) == remoting.SerializeROCKETMQ && headerLen >= 21 {
		return int32(int16(binary.BigEndian.Uint16(header))), int32(binary.BigEndian.Uint32(header[5:])), header, body, nil
	}
	const start, mark = `{"code":0,`, `"opaque":`
	if bytes.HasPrefix(header, []byte(start)) {
		if at := bytes.Index(header, []byte(mark)); at > 0 {
			if n, ok := leadingNumber(header[at+len(mark):]); ok {
				return 0, n, header, body, nil
			}
		}
	}
	if err := scratch.DecodeReply(frame); err != nil {
		return 0, 0, nil, nil, err
	}
	return scratch.Code, scratch.Opaque, header, body, nil
}

func leadingNumber(b []byte) (n int32, ok bool) {
	for i, c := range b {
		if c < '0' || c > '9' {
			return n, i > 0
		}
		if i == 10 {
			return 0, false
		}
		n = n*10 + int32(c-'0')
	}
	return 0, false
}
