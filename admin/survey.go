package admin

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// SurveyOptions say how much of a cluster a survey looks at.
type SurveyOptions struct {
	Target Target
	// Counts leaves out everything but what counts up, for a survey that another is
	// compared with: offsets, dead letters, delay levels, runtime information.
	Counts bool
}

// Survey is what name servers, brokers and clients told at one time: what a diagnosis
// rests on. What could not be had is nil, or among the errors.
type Survey struct {
	At          time.Time
	NameServers []NameServerView // nil with Counts
	Known       []string         // every name server that anybody names, sorted
	Brokers     []BrokerSurvey   // sorted; replicas too
	Lag         *Lag             // nil: it could not be read
	Clients     []Instance       // nil with Counts
	Errors      []TargetError
}

// BrokerSurvey is what one broker told. Values and Err are those of BrokerStatus.
type BrokerSurvey struct {
	BrokerStatus
	Config map[string]string // nil: it does not tell
	// ClockLeast and ClockMost bound how far its clock is ahead of this machine's.
	ClockLeast, ClockMost time.Duration
	ClockErr              error
	Ports                 map[string]error  // by name (main, vip, ha): whether it takes connections from here
	PortAddrs             map[string]string // of the same
	Reached               map[string]error  // by name server: whether it reaches the broker; one that does not tell is missing
	HA                    *remoting.HARuntimeInfo
	Topics                []SurveyTopic // nil: it did not tell
	// Levels are the delay levels in which messages wait that should have been delivered
	// over a minute ago, with their number; nil: not known.
	Levels map[int]int64
	// OpenTransactions are half messages that have not ended; Abandoned are those that
	// were given up after too many checks. Nil: not known.
	OpenTransactions, Abandoned *int64
	DeadLetters                 map[string]int64 // by group, that were ever put; nil: not known
	// IdleClosed are the connections that were closed as idle in the last hour; nil: not known.
	IdleClosed *int64
}

// SurveyTopic is one topic of one broker.
type SurveyTopic struct {
	Name        string
	Kind        string // KindNormal, …
	Read, Write int32
	Perm        int32
	Plain       bool // no attribute, no order: as a topic is that a send created
}

// IsMaster reports whether it takes writes.
func (s *BrokerSurvey) IsMaster() bool { return s.ID == 0 }

// Survey looks over a cluster. It fails only where no name server answers, or the
// target is not there; every other gap is in Errors.
func (c *Client) Survey(ctx context.Context, o SurveyOptions) (*Survey, error) {
	brokers, err := c.targets(ctx, o.Target, true)
	if err != nil {
		return nil, err
	}
	s := &Survey{At: time.Now()}
	var (
		parts  sync.WaitGroup // at a time: a broker that is silent is waited for once
		lag    *Lag
		lagErr error
	)
	parts.Go(func() { c.surveyBrokers(ctx, s, brokers, o.Counts) })
	parts.Go(func() { lag, lagErr = c.GetLag(ctx, LagOptions{Target: o.Target, Ages: !o.Counts, Members: !o.Counts}) })
	if !o.Counts {
		parts.Go(func() { s.NameServers, _ = c.NameServerViews(ctx) }) // those that are silent are in the list
		parts.Go(func() {
			if clients, err := c.ListInstances(ctx, InstancesOptions{Target: o.Target}); err == nil {
				s.Clients = clients.Items
			}
		})
	}
	parts.Wait()
	if lagErr != nil {
		s.Errors = append(s.Errors, TargetError{Addr: "lag", Err: lagErr})
		return s, nil //nolint:nilerr // the error is in the survey
	}
	s.Lag = lag
	s.addErrors(lag.Errors)
	return s, nil
}

// surveyBrokers looks at the brokers, and at which of them the name servers reach.
func (c *Client) surveyBrokers(ctx context.Context, s *Survey, brokers []Broker, counts bool) {
	own := ownNames(brokers)
	s.Errors = c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		one := c.surveyBroker(ctx, b, own, counts)
		mu.Lock()
		defer mu.Unlock()
		s.Brokers = append(s.Brokers, *one)
		return one.Err
	})
	sorted.By(s.Brokers, func(a, b BrokerSurvey) int { return compareBrokers(a.Broker, b.Broker) })
	if !counts {
		c.probeFromNameServers(ctx, s.Brokers)
	}
	s.Known = c.knownServers(s.Brokers)
}

// addErrors adds failures of brokers that are not there yet.
func (s *Survey) addErrors(errs []TargetError) {
	for _, e := range errs {
		if !slices.ContainsFunc(s.Errors, func(x TargetError) bool { return x.Addr == e.Addr }) {
			s.Errors = append(s.Errors, e)
		}
	}
	sortErrors(s.Errors)
}

// knownServers are the name servers of this client and of every broker, sorted.
func (c *Client) knownServers(brokers []BrokerSurvey) []string {
	all := slices.Clone(c.cfg.NameServers)
	for i := range brokers {
		all = append(all, strings.FieldsFunc(brokers[i].Config["namesrvAddr"], func(r rune) bool { return r == ';' || r == ',' || r == ' ' })...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// probeFromNameServers asks each name server whether it reaches the brokers, one after the other. Those of Apache cannot
// tell.
func (c *Client) probeFromNameServers(ctx context.Context, brokers []BrokerSurvey) {
	var mu sync.Mutex
	var all errgroup.Group
	for _, ns := range c.cfg.NameServers {
		all.Go(func() error {
			for i := range brokers {
				b := &brokers[i]
				reached, err := c.probeFrom(ctx, ns, b.Addr)
				var answer *remoting.ResponseError
				if err != nil && errors.As(err, &answer) && answer.Code != remoting.RespRequestCodeNotSupported {
					continue // it does not know the broker
				}
				if err != nil {
					return nil //nolint:nilerr // it does not tell
				}
				mu.Lock()
				if b.Reached == nil {
					b.Reached = map[string]error{}
				}
				b.Reached[ns] = reached
				mu.Unlock()
			}
			return nil
		})
	}
	_ = all.Wait() // nothing is returned
}

// probeFrom asks a name server to connect to a broker: reached is why it could not, err why it does not tell.
func (c *Client) probeFrom(ctx context.Context, ns, addr string) (reached, err error) {
	resp, err := c.ask(ctx, ns, remoting.NewRequest(remoting.ReqProbeBroker, &remoting.ProbeBrokerHeader{BrokerAddr: addr}))
	if err != nil {
		return nil, err
	}
	var h remoting.ProbeBrokerResponseHeader
	if err := remoting.DecodeHeader(resp.Fields, &h); err != nil {
		return nil, err
	}
	if h.Error != "" {
		reached = errors.New(h.Error)
	}
	return reached, nil
}

func (c *Client) surveyBroker(ctx context.Context, b Broker, own map[string]bool, counts bool) *BrokerSurvey {
	f := &brokerFacts{broker: b, ports: map[string]error{}, portAddrs: map[string]string{}}
	s := &BrokerSurvey{BrokerStatus: BrokerStatus{Broker: b}}
	f.asked = time.Now()
	f.runtime, f.err = c.RuntimeInfo(ctx, b.Addr)
	f.answered = time.Now()
	s.Values, s.Err = f.runtime, f.err
	if f.err == nil {
		s.ClockLeast, s.ClockMost, s.ClockErr = f.clock()
		f.config, f.configErr = c.brokerProps(ctx, b.Addr)
		s.Config = f.config
		if table, err := c.topicTable(ctx, b.Addr); err == nil {
			s.takeTopics(table, own)
			c.surveyWaiting(ctx, s, table)
		}
		if ha, err := askBody[remoting.HARuntimeInfo](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerHAStatus, nil)); err == nil {
			s.HA = ha
		}
		s.IdleClosed = c.idleClosed(ctx, b.Addr)
	}
	if !counts {
		c.tryPorts(ctx, f)
		s.Ports, s.PortAddrs = f.ports, f.portAddrs
	}
	return s
}

// The statistic of what happens to connections, and its keys.
const (
	statChannels = "CHANNEL_ACTIVITY"
	statIdle     = "IDLE"
	statConnect  = "CONNECT"
)

// idleClosed is how many connections were closed as idle in the last hour. A broker that
// counts what is opened and has no count of those had none; one that counts neither does
// not tell.
func (c *Client) idleClosed(ctx context.Context, addr string) *int64 {
	idle, err := c.stat(ctx, addr, statChannels, statIdle)
	if err != nil {
		return nil
	}
	n := int64(0)
	if idle == nil {
		opened, err := c.stat(ctx, addr, statChannels, statConnect)
		if err != nil || opened == nil {
			return nil
		}
		return &n
	}
	n = cmp.Or(idle.StatsHour.Sum, idle.StatsMinute.Sum)
	return &n
}

func (s *BrokerSurvey) takeTopics(table map[string]remoting.TopicConfig, own map[string]bool) {
	s.Topics = []SurveyTopic{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		t := table[name]
		s.Topics = append(s.Topics, SurveyTopic{
			Name: name, Kind: topicKind(name, own), Read: t.ReadQueueNums, Write: t.WriteQueueNums, Perm: t.Perm, Plain: len(t.Attributes) == 0 && !t.Order,
		})
	}
}

// surveyWaiting finds what waits inside a broker: delayed messages, transactions, dead
// letters. Replicas hold copies: only masters are asked.
func (c *Client) surveyWaiting(ctx context.Context, s *BrokerSurvey, table map[string]remoting.TopicConfig) {
	if !s.IsMaster() {
		return
	}
	dead := map[string]int64{}
	for name := range table {
		group, ok := strings.CutPrefix(name, message.DLQTopicPrefix)
		if !ok {
			continue
		}
		n, err := c.ends(ctx, s.Addr, name)
		if err != nil {
			dead = nil
			break
		}
		dead[group] = n
	}
	s.DeadLetters = dead
	s.OpenTransactions = c.openTransactions(ctx, s.Addr, table)
	s.Abandoned = new(int64)
	if _, there := table[message.TopicTransCheckMaxTime]; there {
		if n, err := c.ends(ctx, s.Addr, message.TopicTransCheckMaxTime); err == nil {
			s.Abandoned = &n
		} else {
			s.Abandoned = nil
		}
	}
	s.Levels = c.overdue(ctx, s)
}

// ends is how many messages were ever put to a topic on a broker.
func (c *Client) ends(ctx context.Context, addr, topic string) (int64, error) {
	ranges, err := c.knownRanges(ctx, addr, topic)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, r := range ranges {
		n += r.max.Or(0)
	}
	return n, nil
}

// openTransactions are the half messages that the broker has not dealt with: a half
// that is checked again is put to the end once more, so that this is their number.
func (c *Client) openTransactions(ctx context.Context, addr string, table map[string]remoting.TopicConfig) *int64 {
	if _, there := table[message.TopicHalf]; !there {
		return new(int64)
	}
	ranges, err := c.knownRanges(ctx, addr, message.TopicHalf)
	if err != nil {
		return nil
	}
	offsets, err := c.offsets(ctx, addr)
	if err != nil {
		return nil
	}
	var open int64
	for id, r := range ranges {
		done := offsets.at(message.TopicHalf, transactionGroup, id)
		if r.max.OK {
			open += max(0, r.max.Value-max(done.Or(0), r.min.Or(0)))
		}
	}
	return &open
}

// transactionGroup reads half messages inside a broker.
const transactionGroup = "CID_RMQ_SYS_TRANS"

// overdueAfter is how late a delayed message may be.
const overdueAfter = time.Minute

// overdue finds the delay levels whose progress is behind the messages that were stored
// longer ago than the level waits.
func (c *Client) overdue(ctx context.Context, s *BrokerSurvey) map[int]int64 {
	delays, ok := delayLevels(s.Config["messageDelayLevel"])
	if !ok {
		return nil
	}
	late := map[int]int64{}
	for key, text := range s.Values {
		level, ok := strings.CutPrefix(key, "scheduleMessageOffset_")
		n, err := strconv.Atoi(level)
		if !ok || err != nil || delays[n] == 0 {
			continue
		}
		at, end, _ := strings.Cut(text, ",")
		done, errDone := strconv.ParseInt(strings.TrimSpace(at), 10, 64)
		most, errMost := strconv.ParseInt(strings.TrimSpace(end), 10, 64)
		if errDone != nil || errMost != nil || done >= most {
			continue
		}
		q := remoting.MessageQueue{Topic: message.TopicSchedule, BrokerName: s.Name, QueueID: int32(n - 1)}
		due, err := c.offsetAt(ctx, s.Broker, q, time.Now().Add(-delays[n]-overdueAfter))
		if err != nil {
			return nil
		}
		if due > done {
			late[n] = due - done
		}
	}
	return late
}

// delayLevels are the delays of messageDelayLevel by level, from 1 on.
func delayLevels(text string) (map[int]time.Duration, bool) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	out := map[int]time.Duration{}
	for i, word := range strings.Fields(text) {
		n, err := strconv.ParseInt(word[:len(word)-1], 10, 32)
		unit := units[word[len(word)-1]]
		if err != nil || unit == 0 {
			return nil, false
		}
		out[i+1] = time.Duration(n) * unit
	}
	return out, len(out) > 0
}
