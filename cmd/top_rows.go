package cmd

import (
	"time"

	"mqx/internal/render"
	"mqx/tui"
)

// topForm is a view of mqx top as records.
type topForm struct {
	schema render.Schema
	rows   func(w *render.Writer, r *tui.Rated) error
}

var (
	topAt    = render.Field{Name: "at", Kind: render.Time, Wide: true, Doc: "when it was read"}
	topForms = map[string]topForm{
		"groups":  {topGroupSchema, topGroupRows},
		"queues":  {topQueueSchema, topQueueRows},
		"brokers": {topBrokerSchema, topBrokerRows},
		"topics":  {topTopicSchema, topTopicRows},
		"clients": {topClientSchema, topClientRows},
	}
)

// whole is a number as a record has it: nil when it is unknown.
func whole(n tui.Num) any {
	if !n.OK {
		return nil
	}
	return int64(n.V)
}

func fraction(n tui.Num) any {
	if !n.OK {
		return nil
	}
	return n.V
}

var topGroupSchema = render.Schema{Kind: "TopGroupList", Name: "group", Fields: []render.Field{
	topAt,
	{Name: "group", Doc: "consumer group"},
	{Name: "online", Kind: render.Bool, Doc: "it has members"},
	{Name: "members", Kind: render.Int, Doc: "clients that are connected"},
	{Name: "model", Doc: "CLUSTERING or BROADCASTING; unknown when nobody is online"},
	{Name: "lag", Kind: render.Int, Doc: "messages that it has not read, over all queues; unknown when that of one is"},
	{Name: "lagPerSecond", Title: "LAG/S", Kind: render.Float, Doc: "how fast the lag grows; less than 0 when it shrinks"},
	{Name: "outPerSecond", Title: "OUT/S", Kind: render.Float, Doc: "messages a second that it commits"},
	{Name: "drainSeconds", Title: "DRAINS IN", Kind: render.Float, Doc: "time until it has read everything at these rates; unknown when it does not come nearer"},
	{Name: "retryLag", Title: "RETRY", Kind: render.Int, Doc: "messages in its retry topics that it has not read"},
	{Name: "lost", Kind: render.Int, Wide: true, Doc: "messages that were deleted before it had read them"},
	{Name: "marks", Kind: render.List, Doc: "what is odd about it"},
}}

func topGroupRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Groups {
		g := &r.Groups[i]
		var drain any
		if d, ok := r.Drain(g); ok {
			drain = d.Seconds()
		}
		if err := w.Row(r.At, g.Name, g.Online, g.Members, orUnknown(g.Model), whole(g.Lag), fraction(r.GroupLagging[g.Name]), fraction(r.GroupOut[g.Name]),
			drain, whole(g.Retry), g.Lost, listOf(g.Marks)); err != nil {
			return err
		}
	}
	return nil
}

var topQueueSchema = render.Schema{Kind: "TopQueueList", Name: "group", Fields: []render.Field{
	topAt,
	{Name: "group", Doc: "consumer group"},
	{Name: "topic", Doc: "topic"},
	{Name: "broker", Doc: "broker"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "committed", Kind: render.Int, Doc: "offset that the group has committed"},
	{Name: "end", Kind: render.Int, Doc: "end of the queue"},
	{Name: "lag", Kind: render.Int, Doc: "messages between the two"},
	{Name: "marks", Kind: render.List, Doc: "what is odd about it"},
}}

func topQueueRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Groups {
		for _, q := range r.Groups[i].Queues {
			if err := w.Row(r.At, r.Groups[i].Name, q.Topic, q.Broker, q.ID, whole(q.Committed), whole(q.End), whole(q.Lag), listOf(q.Marks)); err != nil {
				return err
			}
		}
	}
	return nil
}

var topBrokerSchema = render.Schema{Kind: "TopBrokerList", Name: "broker", Fields: []render.Field{
	topAt,
	{Name: "cluster", Doc: "cluster", Wide: true},
	{Name: "broker", Doc: "broker name"},
	{Name: "brokerId", Title: "ID", Kind: render.Int, Doc: "0 for a master"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "up", Kind: render.Bool, Doc: "it has answered"},
	{Name: "inPerSecond", Title: "IN/S", Kind: render.Float, Doc: "messages a second that it stores"},
	{Name: "outPerSecond", Title: "OUT/S", Kind: render.Float, Doc: "messages a second that it gives to consumers"},
	{Name: "diskUsed", Kind: render.Float, Doc: "how full the volume of its log is, from 0 to 1"},
	{Name: "sendWaiting", Title: "QUEUED", Kind: render.Int, Doc: "sends that wait for a worker"},
	{Name: "putMaxMs", Kind: render.Int, Wide: true, Doc: "longest put since its start, in ms"},
	{Name: "version", Wide: true, Doc: "version"},
}}

func topBrokerRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Brokers {
		b := &r.Brokers[i]
		if err := w.Row(r.At, b.Cluster, b.Name, b.ID, b.Addr, b.Err == "", fraction(r.BrokerIn[b.Key()]), fraction(r.BrokerOut[b.Key()]), fraction(b.Disk),
			whole(b.SendWaiting), whole(b.PutMax), orUnknown(b.Version)); err != nil {
			return err
		}
	}
	return nil
}

var topTopicSchema = render.Schema{Kind: "TopTopicList", Name: "topic", Fields: []render.Field{
	topAt,
	{Name: "topic", Doc: "topic"},
	{Name: "kind", Doc: "normal, retry, dlq or system"},
	{Name: "inPerSecond", Title: "IN/S", Kind: render.Float, Doc: "messages a second that come; unknown for a topic that no group reads"},
	{Name: "groups", Kind: render.Int, Doc: "groups that read it"},
	{Name: "queues", Kind: render.Int, Doc: "queues to write, over all brokers"},
	{Name: "brokers", Kind: render.Int, Doc: "brokers that have it"},
}}

func topTopicRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Topics {
		t := &r.Topics[i]
		if err := w.Row(r.At, t.Name, t.Kind, fraction(r.TopicIn[t.Name]), t.Groups, t.Queues, t.Brokers); err != nil {
			return err
		}
	}
	return nil
}

var topClientSchema = render.Schema{Kind: "TopClientList", Name: "client", Fields: []render.Field{
	topAt,
	{Name: "client", Whole: true, Doc: "client id"},
	{Name: "addr", Title: "ADDRESS", Doc: "addresses that it connects from"},
	{Name: "language", Doc: "its language"},
	{Name: "version", Doc: "its version"},
	{Name: "consumes", Kind: render.List, Doc: "groups it is a consumer of"},
	{Name: "produces", Kind: render.List, Doc: "groups it is a producer of"},
	{Name: "seen", Kind: render.Time, Doc: "its last heartbeat; unknown where the brokers do not say"},
}}

func topClientRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Clients {
		c := &r.Clients[i]
		var seen time.Time
		if !c.Seen.IsZero() {
			seen = c.Seen
		}
		if err := w.Row(r.At, c.ID, c.Addr, c.Language, c.Version, listOf(c.Consumes), listOf(c.Produces), seen); err != nil {
			return err
		}
	}
	return nil
}
