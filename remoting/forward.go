package remoting

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// AttrForward is the attribute of a topic by which a broker of mqx seals queues of it; its value is a Forward. Apache's brokers
// know no such attribute.
const AttrForward = "mqx.forward"

// InfoForward is the key of runtime information (ReqGetBrokerRuntimeInfo) by which a broker of mqx says with "true" that it
// honours AttrForward.
const InfoForward = "mqxForward"

// FieldForwarded is the field of a send that a broker has handed on: how many brokers have.
const FieldForwarded = "mqxForwarded"

// MaxForwardQueues is the most queues that a topic has on one broker: it bounds the queues that a Forward leads to, all brokers
// together, and the number of its first sealed queue, which is smaller.
const MaxForwardQueues = 65536

// Forward seals queues of a topic: "FROM|BROKER:N;BROKER:N". What producers send to queue From and those behind it is handed to
// queues 0 to N-1 of each broker, in turn, and answered with what that one says: a move of queues loses no send of a producer
// that still has an old route, and a queue has one place where its order is made. It is not changed once it is made, and safe to
// share.
type Forward struct {
	From int32
	To   []ForwardTo
}

// ForwardTo are the first queues of one broker.
type ForwardTo struct {
	Broker string
	Queues int32
}

// ParseForward reads the value of AttrForward.
func ParseForward(text string) (*Forward, error) {
	first, rest, ok := strings.Cut(text, "|")
	from, err := strconv.ParseInt(first, 10, 32)
	if !ok || err != nil {
		return nil, fmt.Errorf("cannot read %q: it has the form QUEUE|BROKER:QUEUES;BROKER:QUEUES", text)
	}
	f := &Forward{From: int32(from)}
	for part := range strings.SplitSeq(rest, ";") {
		broker, count, _ := strings.Cut(part, ":")
		n, err := strconv.ParseInt(count, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %q is no broker with 1 to %d queues", text, part, MaxForwardQueues)
		}
		f.To = append(f.To, ForwardTo{broker, int32(n)})
	}
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", text, err)
	}
	return f, nil
}

// Check says what keeps brokers from honouring it; nil: nothing does.
func (f *Forward) Check() error {
	if f.From < 0 || f.From >= MaxForwardQueues {
		return fmt.Errorf("queue %d is out of range 0 to %d", f.From, MaxForwardQueues-1)
	}
	if len(f.To) == 0 {
		return errors.New("it leads to no broker")
	}
	total := int64(0)
	for _, to := range f.To {
		total += int64(to.Queues)
		switch {
		case to.Broker == "" || strings.ContainsAny(to.Broker, "|:;,"): // a comma ends it in a list of attributes
			return fmt.Errorf("%q is no name of a broker that can be written here", to.Broker)
		case to.Queues < 1 || total > MaxForwardQueues:
			return fmt.Errorf("broker %s with %d queues: 1 to %d are possible, all brokers together", to.Broker, to.Queues, MaxForwardQueues)
		}
	}
	return nil
}

// String is the value of AttrForward.
func (f *Forward) String() string {
	return strconv.Itoa(int(f.From)) + "|" + f.Targets()
}

// Targets are the brokers with their queues: the part of String behind the bar.
func (f *Forward) Targets() string {
	var b strings.Builder
	for i, to := range f.To {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(to.Broker)
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(int(to.Queues)))
	}
	return b.String()
}

// ForwardSlot is the queue that gets what is sent to a sealed one.
type ForwardSlot struct {
	Broker string
	Queue  int32
}

// Slot is where what is sent to a queue goes; false: the queue is not sealed.
func (f *Forward) Slot(queue int32) (to ForwardSlot, sealed bool) {
	if queue < f.From {
		return ForwardSlot{}, false
	}
	total := int32(0)
	for i := range f.To {
		total += f.To[i].Queues
	}
	if total < 1 {
		return ForwardSlot{}, false
	}
	at := (queue - f.From) % total
	for i := range f.To {
		if n := f.To[i].Queues; at >= n {
			at -= n
			continue
		}
		return ForwardSlot{f.To[i].Broker, at}, true
	}
	return ForwardSlot{}, false
}

// LeadsTo reports whether a broker gets what is sent to sealed queues. A nil Forward leads nowhere.
func (f *Forward) LeadsTo(broker string) bool {
	if f == nil {
		return false
	}
	for i := range f.To {
		if f.To[i].Broker == broker {
			return true
		}
	}
	return false
}
