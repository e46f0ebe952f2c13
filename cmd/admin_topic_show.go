package cmd

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/internal/sorted"
)

var topicRouteSchema = render.Schema{Kind: "TopicRouteList", Name: "broker", Fields: []render.Field{
	{Name: "topic", Wide: true, Doc: "topic"},
	{Name: "cluster", Doc: "cluster of the broker"},
	{Name: "broker", Doc: "broker name"},
	{Name: "addrs", Title: "ADDRESSES", Kind: render.List, Doc: "its processes, as id=address"},
	{Name: "readQueues", Title: "READ", Kind: render.Int, Doc: "queues to read; unknown where the route has none of this broker"},
	{Name: "writeQueues", Title: "WRITE", Kind: render.Int, Doc: "queues to write"},
	{Name: "perm", Tone: permTone, Doc: "r, w, rw or none, as the name server gives it"},
	{Name: "sysFlag", Kind: render.Int, Wide: true, Doc: "unit flags"},
	{Name: "order", Wide: true, Doc: "order of the topic as the name server has it; unknown where it has none"},
	{Name: "zone", Wide: true, Doc: "zone of the broker; unknown where it has none"},
}}

var topicAllocationSchema = render.Schema{Kind: "TopicAllocationList", Name: "client", Fields: []render.Field{
	{Name: "client", Doc: "client"},
	{Name: "topic", Wide: true, Doc: "topic"},
	{Name: "broker", Doc: "broker of the queue"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue that it would get; unknown where it gets none"},
}}

var topicLiteSchema = render.Schema{Kind: "TopicLiteList", Name: "broker", Fields: []render.Field{
	{Name: "topic", Wide: true, Doc: "parent topic"},
	{Name: "broker", Doc: "broker name"},
	{Name: "lifetimeMinutes", Kind: render.Int, Doc: "minutes after which an idle lite topic goes"},
	{Name: "liteTopics", Kind: render.Int, Doc: "lite topics there are"},
	{Name: "lightQueues", Kind: render.Int, Doc: "light queues that the broker has in all"},
	{Name: "groups", Kind: render.List, Doc: "groups bound to the topic"},
}}

var liteTopicSchema = render.Schema{Kind: "LiteTopicList", Name: "broker", Fields: []render.Field{
	{Name: "topic", Wide: true, Doc: "parent topic"},
	{Name: "liteTopic", Doc: "lite topic"},
	{Name: "broker", Doc: "broker name"},
	{Name: "minOffset", Title: "MIN", Kind: render.Int, Doc: "offset of the oldest message there is"},
	{Name: "maxOffset", Title: "MAX", Kind: render.Int, Doc: "offset the next message will get"},
	{Name: "lastStored", Kind: render.Time, Doc: "when the newest message was stored"},
	{Name: "sharding", Kind: render.Bool, Doc: "producers send to this broker for the lite topic"},
	{Name: "subscribers", Kind: render.List, Doc: "its subscribers, as client@group"},
}}

// topicRead are the flags of the shows of mqx admin topic get that need more than the
// topic.
type topicRead struct {
	clients string
	lite    string
}

func (r *topicRead) add(f *pflag.FlagSet) {
	f.StringVar(&r.clients, "clients", "", "with --show allocation: clients to share the queues out to, commas between them")
	f.StringVar(&r.lite, "lite", "", "with --show lite: one lite topic in place of a summary")
}

// topicReads are the shows that are no part of a topic's description.
var topicReads = []string{"route", "allocation", "lite"}

// schema is what a show prints.
func (r *topicRead) schema(show string) (render.Schema, error) {
	switch {
	case show == "route":
		return topicRouteSchema, nil
	case show == "lite" && r.lite != "":
		return liteTopicSchema, nil
	case show == "lite":
		return topicLiteSchema, nil
	case r.clients == "":
		return topicAllocationSchema, usagef("cannot share queues out: --clients is missing").try("--show allocation --clients 10.0.0.1,10.0.0.2")
	}
	if twice := repeated(addressList(r.clients)); twice != "" {
		return topicAllocationSchema, usagef("cannot share queues out: client %q stands there twice", twice).try("--clients 10.0.0.1,10.0.0.2")
	}
	return topicAllocationSchema, nil
}

func repeated(list []string) string {
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s] {
			return s
		}
		seen[s] = true
	}
	return ""
}

func (r *topicRead) ask(ctx context.Context, client *admin.Client, show, topic string) (ans answer, err error) {
	switch {
	case show == "route":
		route, err := client.Route(ctx, topic)
		if err != nil {
			return ans, err
		}
		for _, b := range route.BrokerDatas {
			var addrs []string
			for _, id := range slices.Sorted(maps.Keys(b.BrokerAddrs)) {
				addrs = append(addrs, brokerAddr(id, b.BrokerAddrs[id]))
			}
			row := []any{topic, b.Cluster, b.BrokerName, listOf(addrs), nil, nil, nil, nil, deref(route.OrderTopicConf), orUnknown(b.ZoneName)}
			for _, q := range route.QueueDatas {
				if q.BrokerName == b.BrokerName {
					row[4], row[5], row[6], row[7] = q.ReadQueueNums, q.WriteQueueNums, admin.PermText(int(q.Perm)), q.TopicSysFlag
				}
			}
			ans.rows = append(ans.rows, row)
		}
		sorted.By(ans.rows, func(x, y []any) int { return strings.Compare(x[2].(string), y[2].(string)) })
		return ans, nil
	case show == "allocation":
		queues, err := client.ReadQueues(ctx, topic)
		if err != nil {
			return ans, err
		}
		clients := addressList(r.clients)
		shares := admin.Allocate(queues, clients)
		for _, id := range clients {
			if len(shares[id]) == 0 {
				ans.rows = append(ans.rows, []any{id, topic, nil, nil})
			}
			for _, q := range shares[id] {
				ans.rows = append(ans.rows, []any{id, topic, q.BrokerName, q.QueueID})
			}
		}
		return ans, nil
	case r.lite != "":
		found, errs, err := client.LiteTopics(ctx, topic, r.lite)
		for _, l := range found {
			row := []any{topic, r.lite, l.Name, nil, nil, nil, l.Info.ShardingToBroker, nil}
			if o := l.Info.TopicOffset; o != nil {
				row[3], row[4], row[5] = o.MinOffset, o.MaxOffset, timeOrNil(o.LastUpdateTimestamp)
			}
			subscribers := []string{}
			for _, s := range l.Info.Subscriber {
				subscribers = append(subscribers, s.ClientID+"@"+s.Group)
			}
			row[7] = subscribers
			ans.rows = append(ans.rows, row)
		}
		ans.errs = errs
		return ans, err
	}
	found, errs, err := client.ParentTopics(ctx, topic)
	for _, l := range found {
		ans.rows = append(ans.rows, []any{topic, l.Name, l.Info.TTL, l.Info.LiteTopicCount, l.Info.LMQNum, listOf(l.Info.Groups)})
	}
	ans.errs = errs
	return ans, err
}

func brokerAddr(id int64, addr string) string { return strconv.FormatInt(id, 10) + "=" + addr }
