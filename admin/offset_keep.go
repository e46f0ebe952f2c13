package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// keepBatch is the number of queue units asked for at a time.
const keepBatch = 500

// keepSkipped copies the messages that a step skips into the dead letters of the group,
// as a member would that gives one up: the broker makes the copy, with the marks of a
// dead letter, in the order of the queue. The count of dead letters is compared.
func (c *Client) keepSkipped(ctx context.Context, b Broker, group string, s *offsetStep) error {
	want := s.toKeep()
	if want == 0 {
		return nil
	}
	dead := message.DLQTopicPrefix + group
	before, err := c.countOf(ctx, b.Addr, dead)
	if err != nil {
		return fmt.Errorf("cannot count the dead letters of group %q: %w", group, err)
	}
	var sent int64
	for at := s.From; at < s.Move.Offset; {
		body, err := askBody[remoting.QueryConsumeQueueBody](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqQueryConsumeQueue,
			&remoting.QueryConsumeQueueHeader{Topic: s.Topic, QueueID: s.QueueID.QueueID, Index: at, Count: int32(min(keepBatch, s.Move.Offset-at))}))
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", s.QueueID, err)
		}
		if len(body.QueueData) == 0 {
			return fmt.Errorf("cannot keep what is skipped: %s ends at %d", s.QueueID, at)
		}
		err = several(1, body.QueueData[:min(int64(len(body.QueueData)), s.Move.Offset-at)], func(u remoting.ConsumeQueueData) error {
			_, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{
				Offset: u.PhysicOffset, Group: group, DelayLevel: -1, OriginTopic: s.Topic,
			}))
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot copy messages of %s into %s: %w", s.QueueID, dead, err)
		}
		n := min(int64(len(body.QueueData)), s.Move.Offset-at)
		at, sent = at+n, sent+n
	}
	after, err := c.countReached(ctx, b.Addr, dead, before+want)
	if err != nil {
		return fmt.Errorf("cannot count the dead letters of group %q: %w", group, err)
	}
	if sent != want || after-before < want {
		return errors.New("cannot see what was kept: " + fmt.Sprintf("of %s %s skipped, %d came into %s", s.QueueID, words.Count(want, "message is", "messages are"), after-before, dead))
	}
	return nil
}

// keptWithin bounds the wait for copies to be seen: brokers build queues a little after
// they have stored a message.
const keptWithin = 3 * time.Second

// countReached is countOf once it is at least want, or as it is when the wait is over.
func (c *Client) countReached(ctx context.Context, addr, topic string, want int64) (int64, error) {
	end := time.Now().Add(keptWithin)
	for {
		n, err := c.countOf(ctx, addr, topic)
		if err != nil || n >= want || time.Now().After(end) {
			return n, err
		}
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// countOf is how many messages ever came into a topic at a broker; 0 for no topic.
func (c *Client) countOf(ctx context.Context, addr, topic string) (int64, error) {
	ranges, err := c.knownRanges(ctx, addr, topic)
	var n int64
	for _, r := range ranges {
		n += r.max.Value
	}
	return n, err
}
