package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// lineProperties is the member properties of a line: an object whose members stand in the order of the record.
type lineProperties struct {
	values map[string]string
	order  []string // nil: sorted
}

// MarshalJSON writes the members in their order.
func (p lineProperties) MarshalJSON() ([]byte, error) {
	if p.order == nil {
		if p.values == nil {
			return []byte("{}"), nil
		}
		return marshalPlain(p.values)
	}
	b := []byte{'{'}
	for i, name := range p.order {
		if i > 0 {
			b = append(b, ',')
		}
		key, err := marshalPlain(name)
		if err != nil {
			return nil, err
		}
		value, err := marshalPlain(p.values[name])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, key...), ':'), value...)
	}
	return append(b, '}'), nil
}

// marshalPlain is json.Marshal without the escapes that HTML needs.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// UnmarshalJSON reads an object of strings and keeps its order where that is not by name. Of members of one name the last
// one counts.
func (p *lineProperties) UnmarshalJSON(b []byte) error {
	*p = lineProperties{}
	d := json.NewDecoder(bytes.NewReader(b))
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('{') {
		return errors.New("properties is no object")
	}
	p.values = map[string]string{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		value, err := d.Token()
		if err != nil {
			return err
		}
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("properties: %q is no string", name)
		}
		key := name.(string) //nolint:forcetypeassert // of an object
		if _, twice := p.values[key]; !twice {
			p.order = append(p.order, key)
		}
		p.values[key] = text
	}
	if slices.IsSorted(p.order) {
		p.order = nil
	}
	return nil
}

// maxLineTime is the last ms that a line can say: the end of the year 9999.
const maxLineTime = 253402300799999

// WholeLines are the messages of a record as lines from which ParseRecord makes the same record again, to the byte: the
// first of them has what it takes. A body that cannot be taken apart stays as stored. Nothing in them aliases the record.
func (v View) WholeLines() []Line {
	lines, err := v.Lines(true)
	phys := v.PhysicalOffset()
	if err != nil || len(lines) == 0 {
		lines = []Line{v.storedLine()}
	}
	for i := range lines {
		lines[i].PhysicalOffset = &phys
		lines[i].RecordMessage = i
	}
	first := &lines[0]
	first.PreparedTransactionOffset = v.PreparedTransactionOffset()
	if len(lines) > 1 || err != nil || v.SysFlag()&(FlagCompressed|FlagInnerBatch) != 0 || !v.plainLine(first) {
		first.Record = bytes.Clone(v)
		first.RawProperties = nil
	}
	return lines
}

// storedLine is a record as one line, its body as stored.
func (v View) storedLine() Line {
	id, offset := v.QueueID(), v.QueueOffset()
	properties := ParseProperties(v.Properties())
	return Line{
		Topic: string(v.Topic()), QueueID: &id, QueueOffset: &offset, StoreTimestamp: v.StoreTimestamp(), BornTimestamp: v.BornTimestamp(),
		BornHost: v.BornHost(), StoreHost: v.StoreHost(), MsgID: properties[PropUniqKey], Body: bytes.Clone(v.Body()),
		ReconsumeTimes: v.ReconsumeTimes(), Flag: v.Flag(), SysFlag: v.SysFlag(), Properties: properties,
	}
}

// plainLine completes a line and reports whether its plain members make the record.
func (v View) plainLine(l *Line) bool {
	for _, ms := range []int64{l.StoreTimestamp, l.BornTimestamp} {
		if ms < 0 || ms > maxLineTime {
			return false
		}
	}
	if !utf8.ValidString(l.Topic) {
		return false
	}
	props := v.Properties()
	if l.RawProperties == nil && !bytes.Equal(FormatProperties(l.Properties), props) {
		EachProperty(props, func(name, _ []byte) bool {
			l.Order = append(l.Order, string(name))
			return true
		})
		if len(l.Order) != len(l.Properties) || !bytes.Equal(l.rawProperties(), props) {
			l.Order, l.RawProperties = nil, bytes.Clone(props)
		}
	}
	r, err := l.record()
	return err == nil && bytes.Equal(r.Append(nil, false), v)
}

// rawProperties are the properties as they are stored.
func (l *Line) rawProperties() []byte {
	switch {
	case l.RawProperties != nil:
		return l.RawProperties
	case l.Order == nil:
		return FormatProperties(l.Properties)
	}
	var b []byte
	for _, name := range l.Order {
		if value := l.Properties[name]; name != "" && value != "" {
			b = AppendProperty(b, name, value)
		}
	}
	return b
}

// record is the record of the plain members.
func (l *Line) record() (Record, error) {
	r := Record{
		Flag: l.Flag, SysFlag: l.SysFlag, BornTimestamp: l.BornTimestamp, BornHost: l.BornHost,
		StoreTimestamp: l.StoreTimestamp, StoreHost: l.StoreHost, ReconsumeTimes: l.ReconsumeTimes,
		PreparedTransactionOffset: l.PreparedTransactionOffset, Body: l.Body, Topic: []byte(l.Topic), Properties: l.rawProperties(),
	}
	if l.QueueID != nil {
		r.QueueID = *l.QueueID
	}
	if l.QueueOffset != nil {
		r.QueueOffset = *l.QueueOffset
	}
	if l.PhysicalOffset != nil {
		r.PhysicalOffset = *l.PhysicalOffset
	}
	return r, r.Check(false)
}

// AppendRecord appends the record of a line of a whole export. Errors: *LimitError when it does not fit the layout,
// *CorruptError and the like when the member record is none, or is of another position than the line says.
func (l *Line) AppendRecord(dst []byte) ([]byte, error) {
	if len(l.Record) == 0 {
		r, err := l.record()
		if err != nil {
			return dst, err
		}
		return r.Append(dst, false), nil
	}
	v, err := ParseView(l.Record, DecodeOptions{VerifyBodyCRC: true})
	if err != nil {
		return dst, fmt.Errorf("member record: %w", err)
	}
	if len(v) != len(l.Record) || l.PhysicalOffset != nil && v.PhysicalOffset() != *l.PhysicalOffset {
		return dst, errors.New("member record: it is of another position or length")
	}
	return append(dst, v...), nil
}

// Message is the line as a record that gets a new place: its body plain, its properties without those that a broker
// derives from the place or puts on anew, no kind of transaction. Queue offset, physical offset and store time are zero.
func (l *Line) Message() (Record, error) {
	r, err := l.record()
	if err != nil {
		return Record{}, err
	}
	r.QueueOffset, r.PhysicalOffset, r.PreparedTransactionOffset, r.StoreTimestamp = 0, 0, 0, 0
	r.SysFlag &^= FlagTransactionMask | FlagCompressed | FlagInnerBatch | FlagNeedUnwrap
	for _, name := range []string{PropCRC32, PropInnerNum, PropInnerBase} {
		r.Properties = DeleteProperty(r.Properties, name)
	}
	return r, nil
}
