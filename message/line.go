package message

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unicode/utf8"
)

// Line is a message as one line of JSON: what `mqx store export` and `mqx admin message export` write, `mqx consume -o
// ndjson` prints, and `mqx produce` and `mqx store import` take. What a line does not say is zero, and nil where a
// pointer says so.
type Line struct {
	Topic          string
	QueueID        *int32
	QueueOffset    *int64
	StoreTimestamp int64 // ms
	BornTimestamp  int64 // ms
	BornHost       netip.AddrPort
	StoreHost      netip.AddrPort
	MsgID          string
	Body           []byte // decompressed
	ReconsumeTimes int32
	Flag           int32
	SysFlag        int32 // as stored: FlagCompressed says that the record's body was compressed
	Properties     map[string]string
	// RawProperties is the properties as stored, for those that are not UTF-8, which JSON has no way to write.
	RawProperties []byte
	// Order is the names of Properties in the order in which they are stored, which is that of the JSON object. Nil is
	// sorted by name.
	Order []string

	// What follows is only in the lines of a whole export: docs/format/export.md.

	PhysicalOffset            *int64
	PreparedTransactionOffset int64
	// Record is the record as stored, where it cannot be made of the other members: compressed bodies, inner batches.
	Record []byte
	// RecordMessage is the number, from 0, of a message of an inner batch. Record is with message 0.
	RecordMessage int
	// LogFileSize is mappedFileSizeCommitLog of the log; in the first line.
	LogFileSize int64
	// Redacted leaves out the body: such a line is refused by ParseLine.
	Redacted bool
}

// lineJSON is the members of a line, in their order.
type lineJSON struct {
	Topic          string         `json:"topic"`
	QueueID        *int32         `json:"queueId,omitempty"`
	QueueOffset    *int64         `json:"queueOffset,omitempty"`
	StoreTime      string         `json:"storeTime,omitempty"`
	Tag            string         `json:"tag,omitempty"`
	Keys           []string       `json:"keys,omitempty"`
	Body           *string        `json:"body"`
	BodyEncoding   string         `json:"bodyEncoding"`
	MsgID          string         `json:"msgId,omitempty"`
	BornTime       string         `json:"bornTime,omitempty"`
	BornHost       string         `json:"bornHost,omitempty"`
	StoreHost      string         `json:"storeHost,omitempty"`
	ReconsumeTimes int32          `json:"reconsumeTimes"`
	Flag           int32          `json:"flag"`
	SysFlag        int32          `json:"sysFlag"`
	Properties     lineProperties `json:"properties"`
	RawProperties  []byte         `json:"rawProperties,omitempty"`
	PhysicalOffset *int64         `json:"physicalOffset,omitempty"`
	Prepared       int64          `json:"preparedTransactionOffset,omitempty"`
	RecordMessage  int            `json:"recordMessage,omitempty"`
	LogFileSize    int64          `json:"logFileSize,omitempty"`
	Record         []byte         `json:"record,omitempty"`
}

// lineTime is how times are written.
const lineTime = "2006-01-02T15:04:05.000Z07:00"

// AppendLine appends a line with its end.
func AppendLine(dst []byte, l *Line) ([]byte, error) {
	m := Message{Properties: l.Properties}
	j := lineJSON{
		Topic: l.Topic, QueueID: l.QueueID, QueueOffset: l.QueueOffset,
		StoreTime: formatLineTime(l.StoreTimestamp), BornTime: formatLineTime(l.BornTimestamp),
		Tag: m.Tags(), Keys: m.Keys(), MsgID: l.MsgID, BornHost: formatLineHost(l.BornHost), StoreHost: formatLineHost(l.StoreHost),
		ReconsumeTimes: l.ReconsumeTimes, Flag: l.Flag, SysFlag: l.SysFlag, Properties: lineProperties{l.Properties, l.Order}, RawProperties: l.RawProperties,
		PhysicalOffset: l.PhysicalOffset, Prepared: l.PreparedTransactionOffset, RecordMessage: l.RecordMessage, LogFileSize: l.LogFileSize, Record: l.Record,
	}
	body := string(l.Body)
	j.BodyEncoding = "text"
	if !utf8.ValidString(body) {
		j.BodyEncoding = "base64"
		body = base64.StdEncoding.EncodeToString(l.Body)
	}
	if j.Body = &body; l.Redacted {
		j.Body, j.BodyEncoding = nil, "none"
	}
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&j); err != nil {
		return dst, fmt.Errorf("cannot write message as JSON: %w", err)
	}
	return b.Bytes(), nil
}

// ParseLine reads a line. Members that it does not know are passed over; a body is needed, everything else may be
// missing. keys and tag count where properties do not have them.
func ParseLine(line []byte) (Line, error) {
	var j lineJSON
	if err := json.Unmarshal(line, &j); err != nil {
		return Line{}, fmt.Errorf("cannot read message: %w", err)
	}
	l := Line{
		Topic: j.Topic, QueueID: j.QueueID, QueueOffset: j.QueueOffset, MsgID: j.MsgID,
		ReconsumeTimes: j.ReconsumeTimes, Flag: j.Flag, SysFlag: j.SysFlag, Properties: j.Properties.values, RawProperties: j.RawProperties, Order: j.Properties.order,
		PhysicalOffset: j.PhysicalOffset, PreparedTransactionOffset: j.Prepared, RecordMessage: j.RecordMessage, LogFileSize: j.LogFileSize, Record: j.Record,
	}
	var err error
	if l.Body, err = lineBody(&j); err != nil {
		return Line{}, err
	}
	for _, t := range []struct {
		name, text string
		to         *int64
	}{{"storeTime", j.StoreTime, &l.StoreTimestamp}, {"bornTime", j.BornTime, &l.BornTimestamp}} {
		if *t.to, err = parseLineTime(t.text); err != nil {
			return Line{}, fmt.Errorf("cannot read message: %s: %w", t.name, err)
		}
	}
	for _, h := range []struct {
		name, text string
		to         *netip.AddrPort
	}{{"bornHost", j.BornHost, &l.BornHost}, {"storeHost", j.StoreHost, &l.StoreHost}} {
		if *h.to, err = parseLineHost(h.text); err != nil {
			return Line{}, fmt.Errorf("cannot read message: %s: %w", h.name, err)
		}
	}
	if l.Properties == nil {
		l.Properties = map[string]string{}
	}
	m := Message{Properties: l.Properties}
	if m.Tags() == "" && j.Tag != "" {
		m.SetTags(j.Tag)
		l.Order = nil
	}
	if len(m.Keys()) == 0 && len(j.Keys) > 0 {
		m.SetKeys(j.Keys...)
		l.Order = nil
	}
	return l, nil
}

func lineBody(j *lineJSON) (b []byte, err error) {
	if j.Body == nil {
		return nil, errors.New("cannot read message: it has no member body")
	}
	switch j.BodyEncoding {
	case "", "text":
		return []byte(*j.Body), nil
	case "hex":
		b, err = hex.DecodeString(*j.Body)
	case "base64":
		b, err = base64.StdEncoding.DecodeString(*j.Body)
	default:
		err = fmt.Errorf("bodyEncoding %q is none of text, hex, base64", j.BodyEncoding)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read message: body: %w", err)
	}
	return b, nil
}

func formatLineTime(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(lineTime)
}

func parseLineTime(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, err
	}
	return t.UnixMilli(), nil
}

func formatLineHost(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func parseLineHost(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, nil
	}
	return netip.ParseAddrPort(text)
}

// Line is the message as a line. It shares body and properties.
func (r *Received) Line() Line {
	id, offset := r.QueueID, r.QueueOffset
	return Line{
		Topic: r.Topic, QueueID: &id, QueueOffset: &offset, StoreTimestamp: r.StoreTimestamp, BornTimestamp: r.BornTimestamp,
		BornHost: r.BornHost, StoreHost: r.StoreHost, MsgID: r.UniqKey(), Body: r.Body,
		ReconsumeTimes: r.ReconsumeTimes, Flag: r.Flag, SysFlag: r.SysFlag, Properties: r.Properties,
	}
}

// Redact takes out what was sent: the body, and the values of the properties. The line cannot be read back.
func (l *Line) Redact() {
	const hidden = "(hidden)"
	l.Redacted, l.Body, l.RawProperties, l.Record = true, nil, nil, nil
	for name := range l.Properties {
		l.Properties[name] = hidden
	}
}

// Lines are the messages of a record as lines: decompressed, and those of an inner batch one by one. queueOffset says
// whether they tell their queue offset. Nothing in them aliases the record.
func (v View) Lines(queueOffset bool) ([]Line, error) {
	var out []Line
	flags := v.SysFlag()
	for m, err := range DecodeMessages(v, ReceiveOptions{}) {
		if err != nil {
			return nil, err
		}
		l := m.Line()
		l.SysFlag = flags
		if !queueOffset {
			l.QueueOffset = nil
		}
		if flags&FlagInnerBatch != 0 && flags&FlagNeedUnwrap != 0 {
			l.SysFlag = flags &^ (FlagInnerBatch | FlagNeedUnwrap | FlagCompressed)
		} else if props := v.Properties(); !utf8.Valid(props) {
			l.RawProperties = bytes.Clone(props)
		}
		out = append(out, l)
	}
	return out, nil
}
