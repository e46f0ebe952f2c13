package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"mqx/client"
	"mqx/message"
	"mqx/remoting"
)

// salvageChunk is what is asked of a piece at a time.
const salvageChunk = 1 << 20

// Kept is a piece of a log that a broker has cut and kept.
type Kept struct {
	Broker
	remoting.HAKept
}

// SalvageList lists what brokers have cut from their logs and kept.
func (c *Client) SalvageList(ctx context.Context, t Target) ([]Kept, []TargetError, error) {
	found, errs, err := fromBrokers(ctx, c, t, true, func(b Broker) ([]Kept, error) {
		var list []remoting.HAKept
		if err := c.askHA(ctx, b.Addr, remoting.HAActKept, nil, &list); err != nil {
			return nil, err
		}
		var out []Kept
		for _, k := range list {
			out = append(out, Kept{b, k})
		}
		return out, nil
	})
	return slices.Concat(found...), errs, err
}

// SalvageRead gives the messages of one piece, in the order of the log, to f. A piece ends where a record is cut off; one
// that cannot be read is an error that says where.
func (c *Client) SalvageRead(ctx context.Context, addr, name string, f func(m *client.Received) error) error {
	var buf []byte
	at := int64(0)
	for {
		req, err := haRequest(remoting.HAActRead, &remoting.HARead{Name: name, Off: at + int64(len(buf)), Len: salvageChunk})
		if err != nil {
			return err
		}
		resp, err := c.ask(ctx, addr, req)
		if err != nil {
			return err
		}
		last := len(resp.Body) == 0
		buf = append(buf, resp.Body...)
		n, end, err := wholeRecords(buf)
		if err != nil {
			return fmt.Errorf("cannot read %s of %s at byte %d: %w", name, addr, at+int64(n), err)
		}
		if err := eachMessage(buf[:n], f); err != nil {
			return err
		}
		at, buf = at+int64(n), slices.Delete(buf, 0, n)
		if last || end {
			return nil
		}
	}
}

// wholeRecords is how many bytes at the beginning of b are whole records and blanks; end says that zeros follow, which is
// where the log of a file ends.
func wholeRecords(b []byte) (n int, end bool, err error) {
	for {
		size, _, err := message.PeekRecord(b[n:])
		switch {
		case errors.Is(err, message.ErrShort), err == nil && int(size) > len(b)-n:
			return n, false, nil
		case err != nil && len(b)-n >= message.BlankLen && bytes.Count(b[n:n+message.BlankLen], []byte{0}) == message.BlankLen:
			return n, true, nil
		case err != nil:
			return n, false, err
		}
		n += int(size)
	}
}

// eachMessage gives the messages of whole records to f.
func eachMessage(b []byte, f func(m *client.Received) error) error {
	for len(b) > 0 {
		size, magic, err := message.PeekRecord(b)
		if err != nil {
			return err
		}
		if magic != message.MagicBlank {
			for m, err := range message.DecodeMessages(b[:size], message.ReceiveOptions{VerifyBodyCRC: true}) {
				if err != nil {
					return err
				}
				if err := f(client.NewReceived(m, remoting.MessageQueue{Topic: m.Topic, QueueID: m.QueueID})); err != nil {
					return err
				}
			}
		}
		b = b[size:]
	}
	return nil
}

// SalvageTopics counts the messages of a piece by topic.
func (c *Client) SalvageTopics(ctx context.Context, addr, name string) (map[string]int64, error) {
	out := map[string]int64{}
	err := c.SalvageRead(ctx, addr, name, func(m *client.Received) error { out[m.Topic]++; return nil })
	return out, err
}

// PlanSalvage plans to send the messages of one topic of a piece once more, into that topic. Messages that are there by
// another way get there twice: their ids are the same.
func (c *Client) PlanSalvage(ctx context.Context, addr, name, topic string) (Plan, error) {
	if message.IsSystemTopic(topic) {
		return nil, &RefusedError{
			What: fmt.Sprintf("cannot replay the messages of topic %s", topic), Why: "it belongs to the brokers: what is in it is written by them",
			Try: "mqx admin ha salvage export",
		}
	}
	lines := func(ctx context.Context, f func(n int64, m *client.Received) error) error {
		n := int64(0)
		return c.SalvageRead(ctx, addr, name, func(m *client.Received) error {
			if m.Topic != topic {
				return nil
			}
			n++
			return f(n, m)
		})
	}
	p, err := c.PlanCopy(ctx, CopySpec{File: name + " of " + addr, To: topic}, CopyOptions{Lines: lines})
	if err != nil {
		return nil, err
	}
	return p, nil
}
