package pop

import (
	"fmt"
	"strconv"
	"strings"
)

// Receipt is what a client gives back to acknowledge a popped message or to
// change its invisible time: the header extraInfo, and the property POP_CK of
// messages from retry topics.
type Receipt struct {
	Start       int64 // queue offset at which the pop began
	PopTime     int64 // ms
	Invisible   int64 // ms
	ReviveQueue int32 // OrderQueue for an ordered pop
	Kind        string
	Broker      string
	// Queue and Offset of the message; -1 where the text ends before.
	Queue  int32
	Offset int64
}

// ReceiptError says why a text is no receipt.
type ReceiptError struct {
	Text string
	What string
}

// Error quotes the text.
func (e *ReceiptError) Error() string { return fmt.Sprintf("the receipt %q: %s", e.Text, e.What) }

// ParseReceipt reads a receipt of at least six parts, blanks between them:
// start, pop time, invisible time, revive queue, kind, broker name, queue id,
// queue offset. Parts behind the eighth are left alone (proxies put more
// there). The error is a *ReceiptError.
func ParseReceipt(text string) (Receipt, error) {
	bad := func(format string, args ...any) (Receipt, error) {
		return Receipt{}, &ReceiptError{Text: text, What: fmt.Sprintf(format, args...)}
	}
	parts := strings.Split(text, " ")
	if len(parts) < 6 {
		return bad("has %d parts of at least 6", len(parts))
	}
	r := Receipt{Kind: parts[4], Broker: parts[5], Queue: -1, Offset: -1}
	var err error
	for i, to := range []*int64{&r.Start, &r.PopTime, &r.Invisible} {
		if *to, err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return bad("part %d is not a number", i+1)
		}
	}
	for i, to := range map[int]*int32{3: &r.ReviveQueue, 6: &r.Queue} {
		if i >= len(parts) {
			continue
		}
		n, err := strconv.ParseInt(parts[i], 10, 32)
		if err != nil {
			return bad("part %d is not a number", i+1)
		}
		*to = int32(n)
	}
	if len(parts) > 7 {
		if r.Offset, err = strconv.ParseInt(parts[7], 10, 64); err != nil {
			return bad("part 8 is not a number")
		}
	}
	return r, nil
}

// ReviveTime is when the message becomes visible again, ms.
func (r *Receipt) ReviveTime() int64 { return After(r.PopTime, r.Invisible) }

// Ordered reports whether the message was popped in order.
func (r *Receipt) Ordered() bool { return r.ReviveQueue == OrderQueue }

// Append appends the text of a receipt; Offset is left out when it is negative.
func (r *Receipt) Append(dst []byte) []byte {
	for _, n := range []int64{r.Start, r.PopTime, r.Invisible, int64(r.ReviveQueue)} {
		dst = append(strconv.AppendInt(dst, n, 10), ' ')
	}
	dst = append(append(dst, r.Kind...), ' ')
	dst = append(append(dst, r.Broker...), ' ')
	dst = strconv.AppendInt(dst, int64(r.Queue), 10)
	if r.Offset >= 0 {
		dst = strconv.AppendInt(append(dst, ' '), r.Offset, 10)
	}
	return dst
}

// AppendStart appends one entry of startOffsetInfo: kind, queue id and the
// offset at which the pop of that queue began.
func AppendStart(dst []byte, kind string, queue int32, start int64) []byte {
	return strconv.AppendInt(append(appendEntry(dst, kind, queue), ' '), start, 10)
}

// AppendOffsets appends one entry of msgOffsetInfo: kind, queue id and the
// queue offsets of its messages.
func AppendOffsets(dst []byte, kind string, queue int32, offsets []int64) []byte {
	dst = append(appendEntry(dst, kind, queue), ' ')
	for i, off := range offsets {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, off, 10)
	}
	return dst
}

// appendOrderCount appends one entry of orderCountInfo for a message.
func appendOrderCount(dst []byte, kind string, queue int32, offset int64, count int32) []byte {
	if len(dst) > 0 {
		dst = append(dst, ';')
	}
	dst = append(append(dst, kind...), " qo"...)
	dst = append(strconv.AppendInt(dst, int64(queue), 10), '%')
	dst = append(strconv.AppendInt(dst, offset, 10), ' ')
	return strconv.AppendInt(dst, int64(count), 10)
}

// appendEntry begins an entry: "kind queue", with a semicolon before it unless
// it is the first.
func appendEntry(dst []byte, kind string, queue int32) []byte {
	if len(dst) > 0 {
		dst = append(dst, ';')
	}
	dst = append(append(dst, kind...), ' ')
	return strconv.AppendInt(dst, int64(queue), 10)
}
