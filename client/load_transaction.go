package client

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// transactionSource sends half messages to the queues of one broker and ends each of
// them: a slot sends and ends in turn. A message that is rolled back leaves its number
// to the next one, so that it would show as a duplicate if it were delivered.
type transactionSource struct {
	*produceSource
	run     *loadRun
	left    *atomic.Int64 // transactions that may still begin, over all connections; nil for any number
	share   int           // of transactions that are rolled back, in percent
	begun   int
	commit  *endPlan
	rolling *endPlan
	slots   []transactionSlot
}

// transactionSlot is a transaction that has begun.
type transactionSlot struct {
	open     bool // the half message is stored
	ending   bool // the request under way is an end
	rollback bool
	offset   int64 // of the half message, in the half queue
	phys     int64
	key      [message.IDLenV4]byte
}

// endPlan makes END_TRANSACTION requests.
type endPlan struct {
	*template
	offset, phys int // 19 digits
	keys         []int
}

// Numbers that stand in the template of an end.
const (
	endOffsetMark int64 = 1234567890123456789
	endPhysMark   int64 = 1234567890123456788
)

func newEndPlan(broker string, decision int32) (*endPlan, error) {
	h := &remoting.EndTransactionHeader{
		ProducerGroup: DefaultProducerGroup, TranStateTableOffset: endOffsetMark, CommitLogOffset: endPhysMark, CommitOrRollback: decision,
		MsgID: string(keyMark(0)), TransactionID: string(keyMark(1)),
	}
	h.BName = broker
	t, err := newTemplate(remoting.NewRequest(remoting.ReqEndTransaction, h), remoting.SerializeJSON,
		[]byte(strconv.FormatInt(endOffsetMark, 10)), []byte(strconv.FormatInt(endPhysMark, 10)), keyMark(0), keyMark(1))
	if err != nil {
		return nil, err
	}
	return &endPlan{template: t, offset: t.places[0], phys: t.places[1], keys: t.places[2:]}, nil
}

func newTransactionSource(cfg *LoadConfig, b *loadBroker, slots int, book *ledger, run *loadRun, left *atomic.Int64) (*transactionSource, error) {
	p, err := newProduceSource(cfg, b, slots, book)
	if err != nil {
		return nil, err
	}
	s := &transactionSource{produceSource: p, run: run, left: left, share: cfg.RollbackShare, slots: make([]transactionSlot, slots)}
	broker := ""
	if len(b.queues) > 0 {
		broker = b.queues[0].BrokerName
	}
	s.commit, err = newEndPlan(broker, message.TransactionCommit)
	if err == nil {
		s.rolling, err = newEndPlan(broker, message.TransactionRollback)
	}
	return s, err
}

func (s *transactionSource) build(dst []byte, slot int, opaque int32, nowMs int64) ([]byte, bool) {
	st := &s.slots[slot]
	if st.open {
		st.ending = true
		return st.appendEnd(dst, s.endOf(st), opaque), false
	}
	if s.left != nil && s.run.now() >= s.run.from && s.left.Add(-1) < 0 {
		return dst, true
	}
	plan := s.plans[s.next]
	out, _ := s.produceSource.build(dst, slot, opaque, nowMs)
	copy(st.key[:], out[len(dst)+plan.keys[0]:])
	s.begun++ // so many of every hundred, evenly
	st.rollback = s.begun*s.share/100 > (s.begun-1)*s.share/100
	return out, false
}

func (s *transactionSource) endOf(st *transactionSlot) *endPlan {
	if st.rollback {
		return s.rolling
	}
	return s.commit
}

func (st *transactionSlot) appendEnd(dst []byte, p *endPlan, opaque int32) []byte {
	out, start := p.appendTo(dst, opaque)
	frame := out[start:]
	putDigits(frame[p.offset:p.offset+19], st.offset)
	putDigits(frame[p.phys:p.phys+19], st.phys)
	for _, at := range p.keys {
		copy(frame[at:], st.key[:])
	}
	return out
}

func (s *transactionSource) answered(slot int, code int32, header, body []byte) (int, int64, string) {
	st := &s.slots[slot]
	if !st.ending {
		switch code {
		case remoting.RespSuccess, remoting.RespFlushDiskTimeout, remoting.RespFlushSlaveTimeout, remoting.RespSlaveNotAvailable:
		default:
			return 0, 0, remoting.ResponseName(code) // nothing was stored
		}
		var ok bool
		if st.offset, st.phys, ok = placeOfHalf(header); !ok {
			return 0, 0, "an answer to a half message that cannot be read"
		}
		st.open = true
		return 0, 0, ""
	}
	st.open, st.ending = false, false
	if !st.rollback {
		return s.produceSource.answered(slot, code, header, body)
	}
	if code != remoting.RespSuccess {
		return 0, 0, remoting.ResponseName(code)
	}
	return 1, int64(s.plans[0].size), ""
}

func (s *transactionSource) unknown(slot int) {
	s.slots[slot].open, s.slots[slot].ending = false, false
	s.produceSource.unknown(slot) // a commit may have taken place
}

// placeOfHalf reads where a half message stands out of the header of its answer.
func placeOfHalf(header []byte) (offset, phys int64, ok bool) {
	id, idOK := quotedField(header, `"msgId":"`)
	text, textOK := quotedField(header, `"queueOffset":"`)
	if !idOK || !textOK {
		var h struct {
			Fields map[string]string `json:"extFields"`
		}
		if fastjson.Unmarshal(header, &h) != nil {
			return 0, 0, false
		}
		id, text = h.Fields["msgId"], h.Fields["queueOffset"]
	}
	_, phys, err := message.ParseOffsetID(id)
	if err != nil {
		return 0, 0, false
	}
	offset, err = strconv.ParseInt(text, 10, 64)
	return offset, phys, err == nil
}

// quotedField is a field of a JSON header that is found without reading all of it.
func quotedField(header []byte, mark string) (string, bool) {
	at := bytes.Index(header, []byte(mark))
	if at < 0 {
		return "", false
	}
	rest := header[at+len(mark):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return "", false
	}
	return string(rest[:end]), true
}

// rollBackOpen ends the transactions that a run left open.
func rollBackOpen(ctx context.Context, c *core, sources []*transactionSource, addrs []string) error {
	var errs []error
	for i, s := range sources {
		for j := range s.slots {
			st := &s.slots[j]
			if !st.open || st.ending {
				continue
			}
			h := &remoting.EndTransactionHeader{
				ProducerGroup: DefaultProducerGroup, TranStateTableOffset: st.offset, CommitLogOffset: st.phys,
				CommitOrRollback: message.TransactionRollback, MsgID: string(st.key[:]), TransactionID: string(st.key[:]),
			}
			if _, err := c.call(ctx, addrs[i], remoting.NewRequest(remoting.ReqEndTransaction, h)); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
