package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mqx/admin"
	"mqx/internal/sorted"
)

// maxBody is how much of a body is kept for the screen.
const maxBody = 64 << 10

// shownElsewhere are the properties that have a line of their own.
var shownElsewhere = []string{"TAGS", "KEYS", "UNIQ_KEY"}

// Message reads one message from the brokers.
func (l *Live) Message(ctx context.Context, ref MessageRef) (*Message, error) {
	found, err := l.Client.GetMessage(ctx, admin.MessageRef{ID: ref.ID, Topic: ref.Topic, Broker: ref.Broker, Queue: ref.Queue, Offset: ref.Offset})
	if err != nil {
		return nil, err
	}
	if len(found.Messages) == 0 {
		return nil, found.Errors[0]
	}
	m := found.Messages[0]
	out := &Message{
		Ref: MessageRef{Topic: m.Topic, Broker: m.Queue.BrokerName, Queue: m.Queue.QueueID, Offset: m.QueueOffset},
		ID:  m.MessageID, OffsetID: m.OffsetID, Tags: m.Tags(), Keys: strings.Join(m.Keys(), " "), Size: int(m.Size), Reconsumed: int(m.ReconsumeTimes),
		BornHost: fmt.Sprint(m.BornHost), StoreHost: fmt.Sprint(m.StoreHost), Body: m.Body[:min(len(m.Body), maxBody)], BodySize: len(m.Body),
		Others: len(found.Messages) - 1,
	}
	if m.BornTimestamp > 0 {
		out.Born = time.UnixMilli(m.BornTimestamp)
	}
	if m.StoreTimestamp > 0 {
		out.Stored = time.UnixMilli(m.StoreTimestamp)
	}
	for k, v := range m.Properties {
		if !slices.Contains(shownElsewhere, k) {
			out.Properties = append(out.Properties, [2]string{k, v})
		}
	}
	sorted.By(out.Properties, func(a, b [2]string) int { return compareText(a[0], b[0]) })
	if l.Redact {
		out.hide()
	}
	return out, nil
}

// hidden stands for what is not to be shown.
const hidden = "(hidden)"

func (m *Message) hide() {
	m.Body = []byte(hidden)
	for _, s := range []*string{&m.Tags, &m.Keys} {
		if *s != "" {
			*s = hidden
		}
	}
	for i := range m.Properties {
		m.Properties[i][1] = hidden
	}
}
