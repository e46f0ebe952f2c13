package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mqx/client"
	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/message"
)

// Kinds of trace records, as clients write them.
const (
	TracePub            = "Pub"
	TraceSubBefore      = "SubBefore"
	TraceSubAfter       = "SubAfter"
	TraceEndTransaction = "EndTransaction"
	TraceRecall         = "Recall"
)

// TraceRecord is what a client noted of one message.
type TraceRecord struct {
	Type     string
	Time     time.Time // zero where the record has none
	Region   string
	Group    string // of producers or consumers; of SubAfter in the record itself or of its SubBefore
	Topic    string
	MsgID    string
	OffsetID string
	Tags     string
	Keys     string
	// ClientHost is where the client that sent the record is.
	ClientHost string
	StoreHost  string
	BodySize   int64
	Cost       *time.Duration
	Success    *bool
	RequestID  string // joins SubBefore and SubAfter
	Retries    *int32
	// Code is the consumer's outcome: 0 success, 1 time-out, 2 exception, 3 null, 4 failed.
	Code             *int32
	MsgType          string // Normal, Transactional half, …
	TransactionID    string
	TransactionState string
	FromCheck        bool
}

// Separators of trace data: docs/wire/trace.md.
const (
	traceField  = "\x01"
	traceRecord = "\x02"
)

var traceMsgTypes = [...]string{"Normal_Msg", "Trans_Msg_Half", "Trans_msg_Commit", "Delay_Msg", "Order_Msg"}

// TraceError says that a trace record cannot be read; those beside it can.
type TraceError struct {
	Record string
	Why    string
}

// Error quotes the record.
func (e *TraceError) Error() string {
	return fmt.Sprintf("cannot read trace record %q: %s", e.Record, e.Why)
}

// maxTraceRecords bounds the records that are taken from one message; clients put a few dozen into one.
const maxTraceRecords = 100_000

// ParseTrace reads the body of a message of a trace topic. Fields that older or newer clients leave out are empty;
// kinds that are not known are passed over. What cannot be read is in the error, all else is returned.
func ParseTrace(body []byte) (out []TraceRecord, err error) {
	for text := range strings.SplitSeq(string(body), traceRecord) {
		if text == "" {
			continue
		}
		if len(out) >= maxTraceRecords {
			return out, errors.Join(err, &TraceError{"", fmt.Sprintf("there are more than %d", maxTraceRecords)})
		}
		r, ok, bad := parseTraceRecord(text)
		switch {
		case bad != nil:
			err = errors.Join(err, bad)
		case ok:
			out = append(out, r)
		}
	}
	return out, err
}

// traceLine reads the fields of a record; those that are not there are empty.
type traceLine struct {
	fields []string
	bad    string
}

func (l *traceLine) at(i int) string {
	if i < len(l.fields) && l.fields[i] != "null" {
		return l.fields[i]
	}
	return ""
}

func (l *traceLine) int(i int) int64 {
	n, err := strconv.ParseInt(l.at(i), 10, 64)
	if err != nil && l.at(i) != "" && l.bad == "" {
		l.bad = fmt.Sprintf("field %d is no number", i)
	}
	return n
}

func (l *traceLine) time(i int) time.Time {
	if n := l.int(i); n > 0 {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

func (l *traceLine) cost(i int) *time.Duration {
	if l.at(i) == "" {
		return nil
	}
	d := time.Duration(l.int(i)) * time.Millisecond
	return &d
}

func (l *traceLine) bool(i int) *bool {
	text := l.at(i)
	if text == "" {
		return nil
	}
	b := strings.EqualFold(text, "true")
	return &b
}

func (l *traceLine) number(i int) *int32 {
	if l.at(i) == "" {
		return nil
	}
	n := int32(l.int(i))
	return &n
}

func (l *traceLine) msgType(i int) string {
	if l.at(i) == "" {
		return ""
	}
	if n := l.int(i); n >= 0 && n < int64(len(traceMsgTypes)) {
		return traceMsgTypes[n]
	}
	return l.at(i)
}

// traceLeast is the number of fields without which a record says nothing.
var traceLeast = map[string]int{TracePub: 12, TraceSubBefore: 6, TraceSubAfter: 5, TraceEndTransaction: 10, TraceRecall: 6}

func parseTraceRecord(text string) (r TraceRecord, ok bool, err error) {
	l := &traceLine{fields: strings.Split(text, traceField)}
	r.Type = l.fields[0]
	least, known := traceLeast[r.Type]
	if !known {
		return r, false, nil
	}
	if len(l.fields) < least {
		return r, false, &TraceError{cut(text), fmt.Sprintf("it has %s, %s has at least %d", words.Count(len(l.fields), "field"), r.Type, least)}
	}
	if r.Type == TraceSubAfter {
		r.RequestID, r.MsgID, r.Cost, r.Success, r.Keys, r.Code = l.at(1), l.at(2), l.cost(3), l.bool(4), l.at(5), l.number(6)
		r.Time, r.Group = l.time(7), l.at(8)
		return r, l.bad == "", l.err(text)
	}
	r.Time, r.Region, r.Group = l.time(1), l.at(2), l.at(3)
	switch r.Type {
	case TracePub:
		r.Topic, r.MsgID, r.Tags, r.Keys, r.StoreHost, r.BodySize, r.Cost, r.MsgType = l.at(4), l.at(5), l.at(6), l.at(7), l.at(8), l.int(9), l.cost(10), l.msgType(11)
		switch n := len(l.fields); {
		case n == 13:
			r.Success = l.bool(12)
		case n > 13:
			r.OffsetID, r.Success, r.ClientHost = l.at(12), l.bool(13), l.at(14)
		}
	case TraceSubBefore:
		r.RequestID, r.MsgID, r.Retries, r.Keys = l.at(4), l.at(5), l.number(6), l.at(7)
	case TraceEndTransaction:
		r.Topic, r.MsgID, r.Tags, r.Keys, r.StoreHost, r.MsgType = l.at(4), l.at(5), l.at(6), l.at(7), l.at(8), l.msgType(9)
		r.TransactionID, r.TransactionState, r.FromCheck = l.at(10), l.at(11), l.at(12) == "true"
	case TraceRecall:
		r.Topic, r.MsgID, r.Success = l.at(4), l.at(5), l.bool(6)
	}
	return r, l.bad == "", l.err(text)
}

func (l *traceLine) err(text string) error {
	if l.bad == "" {
		return nil
	}
	return &TraceError{cut(text), l.bad}
}

func cut(text string) string { return text[:min(len(text), 200)] }

// Trace is what clients noted of a message.
type Trace struct {
	Records []TraceRecord // by time; SubBefore right before its SubAfter
	Asked   []Broker
	Errors  []TargetError
	More    bool
	Broken  error // records that cannot be read
}

// TraceQuery asks for the trace of a message.
type TraceQuery struct {
	ID         string // the unique id, or a key
	Topic      string // default RMQ_SYS_TRACE_TOPIC
	Begin, End time.Time
	Max        int
}

// GetTrace finds what clients noted of the message with this id or key. No record is a *MessageNotFoundError, unless
// some broker did not answer.
func (c *Client) GetTrace(ctx context.Context, q TraceQuery) (*Trace, error) {
	q.Topic = cmp.Or(q.Topic, message.TopicTrace)
	f, err := c.FindByKey(ctx, KeyQuery{Topic: q.Topic, Key: q.ID, Begin: q.Begin, End: q.End, Max: q.Max})
	if err != nil {
		return nil, err
	}
	t := &Trace{Asked: f.Asked, Errors: f.Errors, More: f.More}
	for _, m := range f.Messages {
		rs, err := ParseTrace(m.Body)
		t.Broken = errors.Join(t.Broken, err)
		for _, r := range rs {
			if r.MsgID == q.ID || slices.Contains(strings.Fields(r.Keys), q.ID) {
				r.ClientHost = cmp.Or(r.ClientHost, hostOf(m))
				t.Records = append(t.Records, r)
			}
		}
	}
	t.Records = joinTrace(t.Records)
	if len(t.Records) == 0 && len(t.Errors) == 0 && t.Broken == nil {
		return nil, &MessageNotFoundError{What: "trace of " + q.ID + " in topic " + q.Topic, Asked: t.Asked}
	}
	return t, nil
}

func hostOf(m *client.Received) string {
	if !m.BornHost.IsValid() {
		return ""
	}
	return m.BornHost.Addr().Unmap().String()
}

// joinTrace orders records by time and gives a SubAfter what only its SubBefore knows.
func joinTrace(rs []TraceRecord) []TraceRecord {
	before := map[string]*TraceRecord{}
	for i := range rs {
		if r := &rs[i]; r.Type == TraceSubBefore {
			before[r.RequestID+traceField+r.MsgID] = r
		}
	}
	for i := range rs {
		r := &rs[i]
		b := before[r.RequestID+traceField+r.MsgID]
		if r.Type != TraceSubAfter || b == nil {
			continue
		}
		r.Group, r.Region, r.Keys = cmp.Or(r.Group, b.Group), cmp.Or(r.Region, b.Region), cmp.Or(r.Keys, b.Keys)
		if r.Retries == nil {
			r.Retries = b.Retries
		}
		if r.Time.IsZero() && r.Cost != nil {
			r.Time = b.Time.Add(*r.Cost)
		}
	}
	sorted.Stably(rs, func(a, b TraceRecord) int { return a.Time.Compare(b.Time) })
	return rs
}
