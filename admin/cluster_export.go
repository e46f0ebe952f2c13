package admin

import (
	"context"
	"slices"
	"sync"

	"mqx/message"
	"mqx/remoting"
)

// exportedKeys are the keys of a broker's configuration that an export holds, those
// that Apache's exportConfigs writes.
var exportedKeys = []string{
	"brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime", "filterServerNums", "flushDiskType", "maxMessageSize",
	"messageDelayLevel", "msgTraceTopicName", "slaveReadEnable", "traceOn", "traceTopicEnable", "useTLS", "autoCreateTopicEnable", "autoCreateSubscriptionGroup",
}

// ConfigsExport is the document of Apache's exportConfigs.
type ConfigsExport struct {
	BrokerConfigs map[string]map[string]string `json:"brokerConfigs"` // by broker name
	ClusterScale  ClusterScale                 `json:"clusterScale"`
}

// ClusterScale counts the servers of a cluster.
type ClusterScale struct {
	Masters     int `json:"masterBrokerSize"`
	NameServers int `json:"namesrvSize"`
	Slaves      int `json:"slaveBrokerSize"`
}

// ExportConfigs reads the main settings of the masters of a cluster and counts its servers.
func (c *Client) ExportConfigs(ctx context.Context, cluster string) (*ConfigsExport, []TargetError, error) {
	all, err := c.targets(ctx, Target{Cluster: cluster}, true)
	if err != nil {
		return nil, nil, err
	}
	e := &ConfigsExport{BrokerConfigs: map[string]map[string]string{}, ClusterScale: ClusterScale{NameServers: len(c.cfg.NameServers)}}
	var masters []Broker
	for _, b := range all {
		if b.ID == 0 {
			masters = append(masters, b)
		}
	}
	e.ClusterScale.Masters, e.ClusterScale.Slaves = len(masters), len(all)-len(masters)
	configs, errs := c.configs(ctx, RoleBroker, masters, remoting.ReqGetBrokerConfig)
	for i := range configs {
		chosen := map[string]string{}
		for _, k := range exportedKeys {
			if v, ok := configs[i].Values[k]; ok {
				chosen[k] = v
			}
		}
		e.BrokerConfigs[configs[i].Name] = chosen
	}
	return e, errs, nil
}

// MetricsExport is the document of Apache's exportMetrics. What a broker did not say is
// left out.
type MetricsExport struct {
	EvaluateReport map[string]*BrokerReport `json:"evaluateReport"` // by broker name
	TotalData      TotalData                `json:"totalData"`
}

// TotalData are the sums over the brokers.
type TotalData struct {
	OneDay OneDay `json:"totalOneDayNum"`
	TPS    struct {
		NormalIn   float64 `json:"totalNormalInTps"`
		NormalOut  float64 `json:"totalNormalOutTps"`
		ScheduleIn float64 `json:"totalScheduleInTps"`
		TransIn    float64 `json:"totalTransInTps"`
	} `json:"totalTps"`
}

// OneDay are the messages of the last full day, those of transactions and delays of
// 24 hours.
type OneDay struct {
	NormalIn   int64 `json:"normalOneDayInNum"`
	NormalOut  int64 `json:"normalOneDayOutNum"`
	ScheduleIn int64 `json:"scheduleOneDayInNum"`
	TransIn    int64 `json:"transOneDayInNum"`
}

// RatesNow are messages a second.
type RatesNow struct {
	NormalIn   float64 `json:"normalInTps"`
	NormalOut  float64 `json:"normalOutTps"`
	ScheduleIn float64 `json:"scheduleInTps"`
	TransIn    float64 `json:"transInTps"`
}

// BrokerReport is what is said of one broker.
type BrokerReport struct {
	Env struct {
		CPUs     string `json:"cpuNum,omitempty"`
		MemoryKB string `json:"totalMemKBytes,omitempty"`
	} `json:"runtimeEnv"`
	Quota struct {
		Disk struct {
			CommitLog    string `json:"commitLogDiskRatio,omitempty"`
			ConsumeQueue string `json:"consumeQueueDiskRatio,omitempty"`
		} `json:"diskRatio"`
		Groups      int      `json:"groupSize"`
		AverageSize string   `json:"messageAverageSize,omitempty"`
		OneDay      OneDay   `json:"oneDayNum"`
		Topics      int      `json:"topicSize"`
		TPS         RatesNow `json:"tps"`
	} `json:"runtimeQuota"`
	Version struct {
		Clients []string `json:"clientInfo"` // LANGUAGE%VERSION, sorted
		Broker  string   `json:"rocketmqVersion"`
	} `json:"runtimeVersion"`
}

// ExportMetrics reads rates, counts and versions of the masters of a cluster.
func (c *Client) ExportMetrics(ctx context.Context, cluster string) (*MetricsExport, []TargetError, error) {
	brokers, err := c.primaries(ctx, Target{Cluster: cluster})
	if err != nil {
		return nil, nil, err
	}
	own := ownNames(brokers)
	e := &MetricsExport{EvaluateReport: map[string]*BrokerReport{}}
	errs := c.each(brokers, func(mu *sync.Mutex, b Broker) error {
		r, err := c.reportOf(ctx, b, own)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		e.EvaluateReport[b.Name] = r
		t, q := &e.TotalData, &r.Quota
		t.TPS.NormalIn += q.TPS.NormalIn
		t.TPS.NormalOut += q.TPS.NormalOut
		t.TPS.ScheduleIn += q.TPS.ScheduleIn
		t.TPS.TransIn += q.TPS.TransIn
		t.OneDay.NormalIn += q.OneDay.NormalIn
		t.OneDay.NormalOut += q.OneDay.NormalOut
		t.OneDay.ScheduleIn += q.OneDay.ScheduleIn
		t.OneDay.TransIn += q.OneDay.TransIn
		return nil
	})
	return e, errs, nil
}

// reportOf asks one broker for all of its report.
func (c *Client) reportOf(ctx context.Context, b Broker, own map[string]bool) (*BrokerReport, error) {
	table, err := askBody[remoting.KVTable](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerRuntimeInfo, nil))
	if err != nil {
		return nil, err
	}
	s := &BrokerStatus{Broker: b, Values: table.Table}
	configs, errs := c.configs(ctx, RoleBroker, []Broker{b}, remoting.ReqGetBrokerConfig)
	if len(errs) > 0 {
		return nil, errs[0].Err
	}
	r := &BrokerReport{}
	r.Env.CPUs = configs[0].Values["clientCallbackExecutorThreads"] // one a processor, by Apache's default
	r.Env.MemoryKB, _ = s.Text("totalMemKBytes")
	q := &r.Quota
	q.Disk.CommitLog, _ = s.Text("commitLogDiskRatio")
	q.Disk.ConsumeQueue, _ = s.Text("consumeQueueDiskRatio")
	q.AverageSize, _ = s.Text("putMessageAverageSize")
	q.TPS.NormalIn, _ = s.Float("putTps")
	q.TPS.NormalOut, _ = s.Float("getTransferredTps")
	q.OneDay.NormalIn, _ = s.Difference("msgPutTotalTodayMorning", "msgPutTotalYesterdayMorning")
	q.OneDay.NormalOut, _ = s.Difference("msgGetTotalTodayMorning", "msgGetTotalYesterdayMorning")
	r.Version.Broker, _ = s.Text("brokerVersionDesc")
	for topic, to := range map[string]struct {
		tps *float64
		day *int64
	}{
		message.TopicHalf:     {&q.TPS.TransIn, &q.OneDay.TransIn},
		message.TopicSchedule: {&q.TPS.ScheduleIn, &q.OneDay.ScheduleIn},
	} {
		d, err := c.stat(ctx, b.Addr, StatTopicPut, topic)
		if err != nil {
			return nil, err
		}
		if d != nil {
			var rate Rate
			rate.add(d)
			*to.tps, *to.day = rate.PerSecond, rate.Day
		}
	}
	return r, c.countOn(ctx, b, own, r)
}

// countOn counts topics, groups and kinds of clients of a broker.
func (c *Client) countOn(ctx context.Context, b Broker, own map[string]bool, r *BrokerReport) error {
	topics, err := c.topicTable(ctx, b.Addr)
	if err != nil {
		return err
	}
	for name := range topics {
		if topicKind(name, own) == KindNormal {
			r.Quota.Topics++
		}
	}
	groups, err := c.groupTable(ctx, b.Addr)
	if err != nil {
		return err
	}
	var names []string
	for name := range groups {
		if !message.IsSystemGroup(name) {
			names = append(names, name)
		}
	}
	r.Quota.Groups = len(names)
	var mu sync.Mutex
	r.Version.Clients = []string{}
	err = several(perBroker, names, func(name string) error {
		conns, err := c.connections(ctx, b.Addr, name)
		if err != nil || conns == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, m := range conns.ConnectionSet {
			r.Version.Clients = append(r.Version.Clients, m.Language+"%"+remoting.VersionName(m.Version))
		}
		return nil
	})
	slices.Sort(r.Version.Clients)
	r.Version.Clients = slices.Compact(r.Version.Clients)
	return err
}
