package broker

import (
	"strconv"
	"sync"

	"mqx/remoting"
	"mqx/remoting/server"
)

// reply is a response under construction. Replies are pooled: the server
// copies what it needs before ReplyWith and ReplyBody return.
type reply struct {
	cmd remoting.Command
	buf []byte
}

var replies = sync.Pool{New: func() any { return &reply{buf: make([]byte, 0, 512)} }}

// newReply returns an empty response with a code. withFields says that the
// response has a header of its own, which is written even when it is empty.
func newReply(code int32, remark string) *reply {
	p := replies.Get().(*reply)
	p.cmd.Reset()
	p.cmd.Flag = remoting.FlagResponse
	p.cmd.Language = remoting.LanguageGo
	p.cmd.Version = remoting.Version
	p.cmd.Code, p.cmd.Remark = code, remark
	p.cmd.EmptyFields = true
	p.buf = p.buf[:0]
	return p
}

func (p *reply) set(key, value []byte) {
	p.cmd.Fields = append(p.cmd.Fields, remoting.Field{Key: key, Value: value})
}

func (p *reply) str(key []byte, value string) {
	n := len(p.buf)
	p.buf = append(p.buf, value...)
	p.set(key, p.buf[n:len(p.buf):len(p.buf)])
}

func (p *reply) int(key []byte, value int64) {
	n := len(p.buf)
	p.buf = strconv.AppendInt(p.buf, value, 10)
	p.set(key, p.buf[n:len(p.buf):len(p.buf)])
}

// to answers r and gives the reply back.
func (p *reply) to(r *server.Request) {
	r.ReplyWith(&p.cmd)
	p.free()
}

func (p *reply) free() {
	if cap(p.buf) > 64<<10 {
		p.buf = make([]byte, 0, 512)
	}
	p.cmd.Body = nil
	replies.Put(p)
}

// Names of response fields.
var (
	keyOffset        = []byte("offset")
	keyTimestamp     = []byte("timestamp")
	keyMsgID         = []byte("msgId")
	keyQueueID       = []byte("queueId")
	keyQueueOffset   = []byte("queueOffset")
	keyTransactionID = []byte("transactionId")
	keyBatchUniqID   = []byte("batchUniqId")
	keyRecallHandle  = []byte("recallHandle")
	keyRegion        = []byte("MSG_REGION")
	keyTraceOn       = []byte("TRACE_ON")
	keySuggest       = []byte("suggestWhichBrokerId")
	keyNextBegin     = []byte("nextBeginOffset")
	keyMinOffset     = []byte("minOffset")
	keyMaxOffset     = []byte("maxOffset")
	keyTopicSysFlag  = []byte("topicSysFlag")
	keyGroupSysFlag  = []byte("groupSysFlag")
	keyForbiddenType = []byte("forbiddenType")
	keySubChange     = []byte("IS_SUB_CHANGE")
	keyHeartbeatV2   = []byte("IS_SUPPORT_HEART_BEAT_V2")
	keyIndexTime     = []byte("indexLastUpdateTimestamp")
	keyIndexPhys     = []byte("indexLastUpdatePhyoffset")
	keyVersion       = []byte("version")
	keyTotalTopics   = []byte("totalTopicNum")
	keyTotalGroups   = []byte("totalGroupNum")
	valTrue          = []byte("true")
	valFalse         = []byte("false")
)

// header fills h from the request's fields and answers SYSTEM_ERROR, naming the
// field, when one is missing or malformed.
func header(r *server.Request, h any) bool {
	if err := remoting.DecodeHeader(r.Fields, h); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return false
	}
	return true
}

// faq is the end of Apache's hints.
const faq = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
