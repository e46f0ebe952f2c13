package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// createInFlight is the number of topics that are being created at a time.
const createInFlight = 64

// numbered are the names of the rows of many topics.
func numbered(i int) string { return fmt.Sprintf("SPEED_%05d", i) }

// createTopics creates n topics at the broker and returns how many a second.
func createTopics(p *peer, name func(i int) string, n, queues int) (perSecond float64, err error) {
	c := remoteclient.New(remoteclient.Config{})
	defer c.Close()
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, createInFlight)
	began := time.Now()
	for range createInFlight {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := create(p, c, name(int(i)), int32(queues)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(n) / time.Since(began).Seconds(), nil
	}
}

func create(p *peer, c *remoteclient.Client, topic string, queues int32) error {
	ctx, cancel := context.WithTimeout(p.b.ctx, time.Minute)
	defer cancel()
	req := remoting.NewRequest(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: topic, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6, TopicFilterType: "SINGLE_TAG",
	})
	resp, err := c.Call(ctx, p.broker, req)
	if err != nil {
		return err
	}
	if resp.Code != remoting.RespSuccess {
		return fmt.Errorf("cannot create topic %s: code %d: %s", topic, resp.Code, resp.Remark)
	}
	return nil
}

// manyTopics is the row of 10,000 topics.
func (b *bench) manyTopics(p *peer) (sample, error) {
	const n = 10_000
	q, err := b.newPeer(p.make, "many")
	if err != nil {
		return nil, err
	}
	s := sample{}
	if s["created"], err = createTopics(q, numbered, n, 4); err != nil {
		return nil, err
	}
	time.Sleep(12 * time.Second) // the name server has them all
	args := append([]string{"produce", "--verify=false", "--duration", "20s"}, manyTopics(n)...)
	load, err := q.load(q.brProc, args...)
	if err != nil {
		return nil, err
	}
	for _, m := range []string{"perSecond", "p50Ms", "p99Ms", "cpu"} {
		s[m] = load[m]
	}
	if err := q.memory(s); err != nil {
		return nil, err
	}
	delete(s, "nsAnonMiB")
	files, err := descriptorsOf(q.brProc.pid())
	if err != nil {
		return nil, err
	}
	s["descriptors"] = float64(files)
	took, err := q.stopBroker()
	if err != nil {
		return nil, err
	}
	s["stopMs"] = took.Seconds() * 1e3
	if took, err = q.firstSend(); err != nil {
		return nil, err
	}
	s["restartMs"] = took.Seconds() * 1e3
	return s, nil
}
