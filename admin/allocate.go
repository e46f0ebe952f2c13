package admin

import (
	"context"

	"mqx/internal/sorted"
	"mqx/remoting"
)

// ReadQueues are the queues of a topic that consumers read, by its route, sorted. They
// are the queues that clients share out: those of brokers that may be read.
func (c *Client) ReadQueues(ctx context.Context, topic string) ([]remoting.MessageQueue, error) {
	route, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var queues []remoting.MessageQueue
	for _, q := range route.QueueDatas {
		for id := range q.ReadQueueNums {
			if q.Perm&4 != 0 {
				queues = append(queues, remoting.MessageQueue{Topic: topic, BrokerName: q.BrokerName, QueueID: id})
			}
		}
	}
	sorted.By(queues, remoting.MessageQueue.Compare)
	return queues, nil
}

// Allocate shares queues out to clients as clients do by default: each takes a run of
// neighbours, the first ones one more where they do not go round.
func Allocate(queues []remoting.MessageQueue, clients []string) map[string][]remoting.MessageQueue {
	out := make(map[string][]remoting.MessageQueue, len(clients))
	at := 0
	for i, id := range clients {
		n := len(queues) / len(clients)
		if i < len(queues)%len(clients) {
			n++
		}
		out[id] = append(out[id], queues[at:at+n]...)
		at += n
	}
	return out
}
