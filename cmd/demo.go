//go:build linux || darwin

package cmd

import (
	"context"
	"fmt"
	"time"

	"mqx/client"
	"mqx/internal/words"
	"mqx/message"
)

const (
	demoTopic    = "DEMO"
	demoMessages = 10
)

// demo sends a few messages to the cluster and reads them back, as a client
// would, and says what it did on stdout.
func demo(ctx context.Context, a *app, namesrv string) error {
	ctx, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	cfg := client.Config{NameServers: []string{namesrv}, Logger: a.logger()}
	began := time.Now()
	sent, err := demoSend(ctx, a, cfg)
	if err != nil {
		return err
	}
	r, err := client.NewReader(client.ReaderConfig{Config: cfg, Topic: demoTopic, Follow: true})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	missing := len(sent)
	err = r.Read(ctx, func(m *client.Received) error {
		if !sent[m.MessageID] {
			return fmt.Errorf("message %q came twice, or was never sent", m.MessageID)
		}
		sent[m.MessageID] = false
		missing--
		fmt.Fprintf(a.Out, "read  queue %d offset %d  %s\n", m.Queue.QueueID, m.QueueOffset, m.Body)
		if missing == 0 {
			return client.ErrStop
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot read back the messages sent: %d of %d are missing: %w", missing, demoMessages, err)
	}
	fmt.Fprintf(a.Out, "%s sent and read back in %s. `mqx dev` keeps a name server and a broker running.\n", words.Count(demoMessages, "message"), time.Since(began).Round(time.Millisecond))
	return nil
}

// demoSend returns the ids of what was sent.
func demoSend(ctx context.Context, a *app, cfg client.Config) (map[string]bool, error) {
	p, err := client.NewProducer(client.ProducerConfig{Config: cfg})
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	sent := make(map[string]bool, demoMessages)
	for i := range demoMessages {
		m := &message.Message{Topic: demoTopic, Body: fmt.Appendf(nil, "message %d", i+1)}
		m.SetTags("demo")
		r, err := p.Send(ctx, m, client.SendOptions{})
		if err != nil {
			return nil, fmt.Errorf("cannot send message %d: %w", i+1, err)
		}
		sent[r.MessageID] = true
		fmt.Fprintf(a.Out, "sent  queue %d offset %d  %s\n", r.Queue.QueueID, r.QueueOffset, m.Body)
	}
	return sent, nil
}
