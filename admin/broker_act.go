package admin

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// Purge is what of a broker is deleted.
type Purge string

// Kinds of Purge.
const (
	PurgeExpired      Purge = actPurgeExpired // files of the commit log that have passed their time
	PurgeQueues       Purge = actPurgeQueues  // files of consume queues whose messages have gone
	PurgeUnusedTopics Purge = actPurgeUnused  // queues of topics that the broker no longer has
)

// PlanPurge plans to delete what a broker, or the masters of a cluster, would delete
// by themselves some time. What groups have not read of it is in the notes.
func (c *Client) PlanPurge(ctx context.Context, t Target, p Purge) (Plan, error) {
	return c.planOneAct(ctx, actRequest{Act: string(p), Object: cmp.Or(t.Broker, t.Cluster), Place: onMasters(t)})
}

// queueNotes says that nothing readable goes.
func queueNotes(context.Context, *Client, []Broker, actRequest) ([]Note, []TargetError) {
	return []Note{{"keeps", "every message that can still be read: only entries go whose messages have gone already"}}, nil
}

// expiredNotes says which messages have not been read of what has expired: those that
// were stored before the time that files are kept. A file goes as a whole when the
// newest of its messages is that old, so that it may be fewer.
func expiredNotes(ctx context.Context, c *Client, servers []Broker, _ actRequest) ([]Note, []TargetError) {
	var notes []Note
	var lost []string
	errs := c.each(servers, func(mu *sync.Mutex, b Broker) error {
		resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerConfig, nil))
		if err != nil {
			return err
		}
		hours, err := strconv.Atoi(propertyLines(resp.Body)["fileReservedTime"])
		if err != nil {
			return fmt.Errorf("cannot tell how long the broker keeps files: %w", err)
		}
		cutoff := time.Now().Add(-time.Duration(hours) * time.Hour)
		lines, err := c.unreadBefore(ctx, b, cutoff)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, Note{"expired", fmt.Sprintf("at %s: what was stored before %s (fileReservedTime=%s)", nameOf(b), cutoff.UTC().Format(time.RFC3339), words.Count(hours, "hour"))})
		lost = append(lost, lines...)
		return nil
	})
	return append(notes, noteLines(wordLost, lost)...), errs
}

// unreadBefore lists what the groups of a broker have not read of messages that were
// stored before a time, a line a queue.
func (c *Client) unreadBefore(ctx context.Context, b Broker, cutoff time.Time) ([]string, error) {
	list, err := askBody[remoting.ConsumeStatsList](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsHeader{}))
	if err != nil {
		return nil, fmt.Errorf("cannot ask how far groups have read: %w", err)
	}
	searched := map[remoting.MessageQueue][2]int64{} // the first message there is, and the first after the cut
	var lines []string
	for _, groups := range list.ConsumeStatsList {
		for group, stats := range groups {
			for _, s := range stats {
				for q, o := range s.OffsetTable {
					if o.BrokerOffset <= o.ConsumerOffset {
						continue
					}
					end, ok := searched[q]
					if !ok {
						if end, err = c.rangeBefore(ctx, b, q, cutoff); err != nil {
							return nil, err
						}
						searched[q] = end
					}
					if n := end[1] - max(o.ConsumerOffset, end[0]); n > 0 {
						lines = append(lines, fmt.Sprintf("up to %s of topic %s in queue %d of %s not read by group %s", words.Count(n, "message"), q.Topic, q.QueueID, nameOf(b), group))
					}
				}
			}
		}
	}
	return lines, nil
}

// rangeBefore is the range of offsets of the messages that were stored before a time.
func (c *Client) rangeBefore(ctx context.Context, b Broker, q remoting.MessageQueue, at time.Time) (r [2]int64, err error) {
	resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqGetMinOffset, &remoting.GetMinOffsetHeader{Topic: q.Topic, QueueID: q.QueueID}))
	if err != nil {
		return r, fmt.Errorf("cannot find the start of queue %d of topic %q: %w", q.QueueID, q.Topic, err)
	}
	first, ok, err := resp.Fields.Int64("offset")
	if err != nil || !ok {
		return r, fmt.Errorf("cannot read the start of queue %d of topic %q: %w", q.QueueID, q.Topic, err)
	}
	end, err := c.offsetAt(ctx, b, q, at)
	return [2]int64{first, end}, err
}

// offsetAt is the offset of the first message of a queue that was stored at a time or
// later.
func (c *Client) offsetAt(ctx context.Context, b Broker, q remoting.MessageQueue, at time.Time) (int64, error) {
	resp, err := c.ask(ctx, b.Addr, remoting.NewRequest(remoting.ReqSearchOffsetByTimestamp,
		&remoting.SearchOffsetHeader{Topic: q.Topic, QueueID: q.QueueID, Timestamp: at.UnixMilli()}))
	if err != nil {
		return 0, fmt.Errorf("cannot search queue %d of topic %q: %w", q.QueueID, q.Topic, err)
	}
	offset, ok, err := resp.Fields.Int64("offset")
	if err != nil || !ok {
		return 0, fmt.Errorf("cannot read the answer of the search in queue %d of topic %q: %w", q.QueueID, q.Topic, err)
	}
	return offset, nil
}

// Modes of reading ahead.
const (
	ReadAheadNormal = "0" // the kernel reads ahead as it does
	ReadAheadRandom = "1" // it does not
)

// PlanReadAhead plans to set how the kernel reads ahead in the commit log of a broker,
// or of all of a cluster, slaves too.
func (c *Client) PlanReadAhead(ctx context.Context, t Target, mode string) (Plan, error) {
	if mode != ReadAheadNormal && mode != ReadAheadRandom {
		return nil, invalidf("cannot use read ahead mode %q: %s is normal, %s is random", mode, ReadAheadNormal, ReadAheadRandom)
	}
	return c.planOneAct(ctx, actRequest{Act: actReadAhead, Object: cmp.Or(t.Broker, t.Cluster), Place: place{Brokers: &t}, Args: map[string]string{"mode": mode}})
}

// Timer engines.
const (
	TimerWheel   = "F"
	TimerRocksDB = "R"
)

// PlanTimerEngine plans to switch what a broker, or the masters of a cluster, keep
// timer messages in.
func (c *Client) PlanTimerEngine(ctx context.Context, t Target, engine string) (Plan, error) {
	if engine != TimerWheel && engine != TimerRocksDB {
		return nil, invalidf("cannot use timer engine %q: %s is the file time wheel, %s is RocksDB", engine, TimerWheel, TimerRocksDB)
	}
	return c.planOneAct(ctx, actRequest{Act: actTimerEngine, Object: cmp.Or(t.Broker, t.Cluster), Place: onMasters(t), Args: map[string]string{"engine": engine}})
}

// PlanMasterFlushOffset plans to tell a slave how far its master has flushed.
func (c *Client) PlanMasterFlushOffset(ctx context.Context, addr string, offset int64) (Plan, error) {
	if offset < 0 {
		return nil, invalidf("cannot use flush offset %d: it must be 0 or more", offset)
	}
	return c.planOneAct(ctx, actRequest{Act: actFlushOffset, Object: addr, Place: place{Addrs: []string{addr}}, Args: map[string]string{"offset": strconv.FormatInt(offset, 10)}})
}

// PlanPopRecords plans to let a broker, or all of a cluster, bring its pop records from
// RocksDB back into the log.
func (c *Client) PlanPopRecords(ctx context.Context, t Target) (Plan, error) {
	return c.planOneAct(ctx, actRequest{Act: actPopRecords, Object: cmp.Or(t.Broker, t.Cluster), Place: place{Brokers: &t}})
}

// PlanElectMaster plans to let a controller make a replica the master of its name. Refused are ids that the controller does not have
// and replicas that are not alive (*RefusedError).
func (c *Client) PlanElectMaster(ctx context.Context, controller, cluster, broker string, id int64) (Plan, error) {
	return c.planOneAct(ctx, actRequest{Act: actElect, Object: broker, Place: place{Addrs: []string{controller}}, Args: map[string]string{"cluster": cluster, "id": strconv.FormatInt(id, 10)}})
}

// PlanCleanBroker plans to let a controller forget a broker: the replicas with these ids, ; between them, which must not be alive, or
// the name with all its replicas, which must have no master; with living whatever they are.
func (c *Client) PlanCleanBroker(ctx context.Context, controller, cluster, broker, ids string, living bool) (Plan, error) {
	if !living && cluster == "" {
		return nil, invalidf("cannot clean the metadata of broker %q: the cluster is missing, which tells who is alive", broker)
	}
	if living && ids != "" {
		return nil, invalidf("cannot clean broker ids %q with living: controllers look at no ids then, and forget all replicas of the name", ids)
	}
	for id := range strings.SplitSeq(ids, ";") {
		if _, err := strconv.ParseInt(id, 10, 64); ids != "" && err != nil {
			return nil, invalidf("cannot use broker ids %q: numbers with ; between them", ids)
		}
	}
	return c.planOneAct(ctx, actRequest{
		Act: actCleanBroker, Object: broker, Place: place{Addrs: []string{controller}},
		Args: map[string]string{"cluster": cluster, "ids": ids, "living": strconv.FormatBool(living)},
	})
}

// PlanAddBroker plans to let a container start the broker of a configuration file on
// its machine.
func (c *Client) PlanAddBroker(ctx context.Context, container, config string) (Plan, error) {
	if config == "" {
		return nil, invalidf("cannot add a broker to container %q: the path of its configuration is missing", container)
	}
	return c.planOneAct(ctx, actRequest{Act: actAddBroker, Object: container, Place: place{Addrs: []string{container}}, Args: map[string]string{"config": config}})
}

// PlanRemoveBroker plans to let a container stop a broker of its.
func (c *Client) PlanRemoveBroker(ctx context.Context, container, cluster, broker string, id int64) (Plan, error) {
	if cluster == "" || broker == "" || id < 0 {
		return nil, invalidf("cannot remove broker %s:%s:%d: cluster, name and an id of 0 or more are needed", cluster, broker, id)
	}
	return c.planOneAct(ctx, actRequest{
		Act: actRemoveBroker, Object: broker, Place: place{Addrs: []string{container}},
		Args: map[string]string{"cluster": cluster, "id": strconv.FormatInt(id, 10)},
	})
}

// PlanLiteDispatch plans to let the brokers of a parent topic dispatch its lite topics
// to a group, or to one client of it. An empty broker means all of them.
func (c *Client) PlanLiteDispatch(ctx context.Context, topic, group, clientID, broker string) (Plan, error) {
	if err := message.ValidateTopic(topic); err != nil {
		return nil, err
	}
	brokers, err := c.topicBrokers(ctx, topic)
	if err != nil {
		return nil, err
	}
	var addrs []string
	names := map[string]string{}
	for _, b := range brokers {
		if broker == "" || b.Name == broker || b.Addr == broker {
			addrs, names[b.Addr] = append(addrs, b.Addr), b.Name
		}
	}
	if len(addrs) == 0 {
		return nil, &NotFoundError{Kind: "broker", Name: broker}
	}
	p, err := c.planAct(ctx, actRequest{Act: actLiteDispatch, Object: group, Place: place{Addrs: addrs}, Args: map[string]string{"topic": topic, "client": clientID}})
	if err != nil {
		return nil, err
	}
	for i := range p.servers {
		p.servers[i].Name = names[p.servers[i].Addr]
	}
	return p, nil
}

// PlanRocksDBToJSON plans to let brokers that keep their configuration in RocksDB write
// it as JSON: topics, subscriptionGroups, consumerOffsets, ; between them.
func (c *Client) PlanRocksDBToJSON(ctx context.Context, t Target, types []string) (Plan, error) {
	return c.planOneAct(ctx, actRequest{Act: actRocksDBJSON, Object: cmp.Or(t.Broker, t.Cluster), Place: place{Brokers: &t}, Args: map[string]string{"types": strings.Join(types, ";")}})
}
