package cmd

import (
	"strings"
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

// secondsOf is a duration as a record has it: nil when there is none.
func secondsOf(d time.Duration) any {
	if d <= 0 {
		return nil
	}
	return d.Seconds()
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
	{Name: "ageSeconds", Title: "AGE", Kind: render.Float, Wide: true, Doc: "age of the oldest message that it has not read"},
	{Name: "expires", Wide: true, Doc: "whether retention deletes it before its turn comes: yes or no; unknown where nobody can tell"},
	{Name: "lost", Kind: render.Int, Wide: true, Doc: "messages that were deleted before it had read them"},
	{Name: "consumeTps", Title: "TPS", Kind: render.Float, Wide: true, Doc: "messages a second that the brokers gave it over the last minute, as they say"},
	{Name: "stale", Kind: render.Bool, Wide: true, Doc: "a part of it lies at a broker that does not answer, and is as old as at says"},
	{Name: "marks", Kind: render.List, Doc: "what is odd about it"},
}}

func topGroupRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Groups {
		g := &r.Groups[i]
		var drain any
		if d, ok := r.Drain(g); ok {
			drain = d.Seconds()
		}
		if err := w.Row(g.At, g.Name, g.Online, g.Members, orUnknown(g.Model), whole(g.Lag), fraction(r.GroupLagging[g.Name]), fraction(r.GroupOut[g.Name]),
			drain, whole(g.Retry), secondsOf(g.Age), orUnknown(g.Expires), g.Lost, fraction(g.TPS), g.Stale, listOf(g.Marks)); err != nil {
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
	{Name: "ageSeconds", Title: "AGE", Kind: render.Float, Wide: true, Doc: "age of the oldest message that is not read"},
	{Name: "stale", Kind: render.Bool, Wide: true, Doc: "its broker does not answer: the figures are as old as at says"},
	{Name: "marks", Kind: render.List, Doc: "what is odd about it"},
}}

func topQueueRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Groups {
		for _, q := range r.Groups[i].Queues {
			if err := w.Row(q.At, r.Groups[i].Name, q.Topic, q.Broker, q.ID, whole(q.Committed), whole(q.End), whole(q.Lag), secondsOf(q.Age), q.Stale, listOf(q.Marks)); err != nil {
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
	{Name: "putP99Ms", Title: "PUT P99", Kind: render.Float, Wide: true, Doc: "what 99 of 100 puts took at most, in ms"},
	{Name: "lockHeldMs", Title: "LOCK", Kind: render.Int, Wide: true, Doc: "for how long an append has held the log, in ms"},
	{Name: "flushBehind", Wide: true, Doc: "bytes that are not flushed yet, as the broker writes it"},
	{Name: "replicas", Kind: render.Int, Wide: true, Doc: "replicas that are connected; unknown at a replica"},
	{Name: "haGapBytes", Title: "HA GAP", Kind: render.Size, Wide: true, Doc: "what the replica that is furthest behind has not got; unknown without a replica, and where one has not reported yet"},
	{Name: "connections", Title: "CONNS", Kind: render.Int, Wide: true, Doc: "clients that are connected"},
	{Name: "version", Wide: true, Doc: "version"},
	{Name: "haLevel", Wide: true, Doc: "level of replication; unknown of a replica and of Apache's"},
	{Name: "haDegraded", Kind: render.Bool, Wide: true, Doc: "it acknowledges with fewer copies than its level says; unknown where its level is"},
	{Name: "haState", Wide: true, Doc: "of a replica: following, or what mqx admin ha status says instead; fenced of a master whose place another has taken; unknown of other masters and of Apache's"},
}}

func topBrokerRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Brokers {
		b := &r.Brokers[i]
		var degraded any
		if b.HALevel != "" {
			degraded = b.HADegraded
		}
		if err := w.Row(b.At, b.Cluster, b.Name, b.ID, b.Addr, b.Err == "", fraction(r.BrokerIn[b.Key()]), fraction(r.BrokerOut[b.Key()]), fraction(b.Disk),
			whole(b.SendWaiting), whole(b.PutMax), fraction(b.PutP99), whole(b.LockHeld), orUnknown(b.FlushBehind), whole(b.Replicas), whole(b.HAGap),
			whole(b.Conns), orUnknown(b.Version), orUnknown(b.HALevel), degraded, orUnknown(b.HAState)); err != nil {
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
	{Name: "outPerSecond", Title: "OUT/S", Kind: render.Float, Wide: true, Doc: "messages a second that all its groups commit"},
	{Name: "stored", Kind: render.Int, Wide: true, Doc: "messages that its queues hold"},
}}

func topTopicRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Topics {
		t := &r.Topics[i]
		if err := w.Row(r.At, t.Name, t.Kind, fraction(r.TopicIn[t.Name]), t.Groups, t.Queues, t.Brokers, fraction(r.TopicOut[t.Name]), whole(t.Stored)); err != nil {
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
	{Name: "brokers", Kind: render.List, Wide: true, Doc: "brokers that it is connected to"},
	{Name: "seen", Kind: render.Time, Doc: "its last heartbeat; unknown where the brokers do not say"},
}}

func topClientRows(w *render.Writer, r *tui.Rated) error {
	for i := range r.Clients {
		c := &r.Clients[i]
		var seen time.Time
		if !c.Seen.IsZero() {
			seen = c.Seen
		}
		if err := w.Row(c.At, c.ID, strings.Join(c.Addrs, " "), c.Language, c.Version, listOf(c.Consumes), listOf(c.Produces), listOf(c.Brokers), seen); err != nil {
			return err
		}
	}
	return nil
}
