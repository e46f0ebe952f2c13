package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/internal/sorted"
	"mqx/message"
	"mqx/remoting"
)

// Verdicts of a Check.
const (
	VerdictOK      = "ok"
	VerdictFinding = "finding"
	VerdictUnknown = "unknown" // it cannot be known from here, and Evidence says why
)

// Check is one thing that was looked at, with what was seen.
type Check struct {
	Name     string // registered, clock, name-servers, port, ports-from-brokers, disk, disk-speed, version, auto-create, permission, groups, topics
	Broker   string // or name server, by its address
	Addr     string
	Verdict  string
	Evidence string
	Try      string // what mends it; empty where nothing has to be
}

// JoinCheckOptions say what is looked at and what is too much.
type JoinCheckOptions struct {
	Target Target
	// Joining is a broker, by name or address, that is to come into the cluster: its
	// groups, topics and rules are looked at too. Empty for none.
	Joining string
	// MaxSkew between a broker's clock and this machine's, default 2 s. Brokers tell
	// their time in seconds only.
	MaxSkew time.Duration
	// MaxDiskRatio of the disk of the commit log, default 0.75.
	MaxDiskRatio float64
}

// Defaults of JoinCheckOptions, and of what is slow.
const (
	defaultMaxSkew  = 2 * time.Second
	defaultDisk     = 0.75
	slowPut         = 500.0 // ms, of 99 in 100 puts
	portDialTimeout = time.Second
)

// brokerFacts is what one broker told, and what was tried on it.
type brokerFacts struct {
	broker     Broker
	err        error // it did not answer at all
	asked      time.Time
	answered   time.Time
	runtime    map[string]string
	config     map[string]string // nil where it does not tell
	configErr  error
	ports      map[string]error // by name: main, vip, ha
	portAddrs  map[string]string
	replicas   []remoting.HAConnectionRuntimeInfo
	replicaErr error
	groups     map[string]remoting.SubscriptionGroupConfig
	topics     []string
	tableErr   error
}

// joinFacts is all that JoinCheck judges.
type joinFacts struct {
	servers map[string]map[string]bool // addresses of brokers by name server
	down    map[string]error           // name servers without an answer
	brokers []*brokerFacts
	joining string
	opts    JoinCheckOptions
}

// JoinCheck looks at what brokers and name servers must agree on before a broker takes
// traffic: who is registered where, clocks, name-server lists, ports, disks, versions.
// It changes nothing and connects to the ports of brokers from here. Brokers that do not answer are in errs; what
// they would have told is unknown.
func (c *Client) JoinCheck(ctx context.Context, o JoinCheckOptions) (checks []Check, errs []TargetError, err error) {
	if o.MaxSkew <= 0 {
		o.MaxSkew = defaultMaxSkew
	}
	if o.MaxDiskRatio <= 0 {
		o.MaxDiskRatio = defaultDisk
	}
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	f := &joinFacts{opts: o}
	f.servers, f.down = c.views(ctx)
	brokers, err := joinBrokers(all, o, f)
	if err != nil {
		return nil, nil, err
	}
	var mine sync.Mutex
	_ = c.each(brokers, func(_ *sync.Mutex, b Broker) error {
		bf := c.brokerFacts(ctx, b, o.Joining != "")
		mine.Lock()
		defer mine.Unlock()
		f.brokers = append(f.brokers, bf)
		return nil
	})
	sorted.By(f.brokers, func(a, b *brokerFacts) int {
		return strings.Compare(a.broker.Name+"\x00"+a.broker.Addr, b.broker.Name+"\x00"+b.broker.Addr)
	})
	for _, b := range f.brokers {
		if b.err != nil {
			errs = append(errs, b.broker.fail(b.err))
		}
	}
	return f.judge(), errs, nil
}

// joinBrokers are the brokers to look at, replicas too, and the address of the one that joins.
func joinBrokers(all []Broker, o JoinCheckOptions, f *joinFacts) ([]Broker, error) {
	primaries, err := selectPrimaries(all, o.Target)
	if err != nil {
		return nil, err
	}
	var out []Broker
	for _, b := range all {
		if slices.ContainsFunc(primaries, func(p Broker) bool { return p.Name == b.Name && p.Cluster == b.Cluster }) {
			out = append(out, b)
		}
	}
	if o.Joining != "" {
		found, err := selectPrimaries(all, Target{Broker: o.Joining})
		if err != nil {
			return nil, err
		}
		f.joining = found[0].Addr
		if !slices.ContainsFunc(out, func(b Broker) bool { return b.Addr == f.joining }) {
			out = append(out, found[0])
		}
	}
	if len(out) == 0 {
		return nil, &NotFoundError{Kind: "broker"}
	}
	return out, nil
}

// views is what each name server knows: they know nothing of each other.
func (c *Client) views(ctx context.Context) (map[string]map[string]bool, map[string]error) {
	known, down := map[string]map[string]bool{}, map[string]error{}
	var servers []Broker
	for _, addr := range c.ns.All() {
		servers = append(servers, Broker{Addr: addr})
	}
	errs := c.each(servers, func(mu *sync.Mutex, s Broker) error {
		info, err := askBody[remoting.ClusterInfo](ctx, c, s.Addr, remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil))
		if err != nil {
			return err
		}
		addrs := map[string]bool{}
		for _, bd := range info.BrokerAddrTable {
			for _, a := range bd.BrokerAddrs {
				addrs[a] = true
			}
		}
		mu.Lock()
		defer mu.Unlock()
		known[s.Addr] = addrs
		return nil
	})
	for _, e := range errs {
		down[e.Addr] = e.Err
	}
	return known, down
}

// brokerFacts asks one broker; tables says whether its groups and topics matter.
func (c *Client) brokerFacts(ctx context.Context, b Broker, tables bool) *brokerFacts {
	f := &brokerFacts{broker: b, ports: map[string]error{}, portAddrs: map[string]string{}}
	f.asked = time.Now()
	info, err := c.RuntimeInfo(ctx, b.Addr)
	f.answered = time.Now()
	if err != nil {
		f.err = err
	} else {
		f.runtime = info
		f.config, f.configErr = c.brokerProps(ctx, b.Addr)
		if b.ID == 0 {
			ha, err := askBody[remoting.HARuntimeInfo](ctx, c, b.Addr, remoting.NewRequest(remoting.ReqGetBrokerHAStatus, nil))
			if f.replicaErr = err; err == nil {
				f.replicas = ha.ConnectionInfo
			}
		}
		if tables {
			f.tables(ctx, c)
		}
	}
	c.tryPorts(ctx, f)
	return f
}

// tables reads the groups and topics of the broker.
func (f *brokerFacts) tables(ctx context.Context, c *Client) {
	if f.groups, f.tableErr = c.groupTable(ctx, f.broker.Addr); f.tableErr != nil {
		return
	}
	topics, err := c.topicTable(ctx, f.broker.Addr)
	f.tableErr = err
	own := ownNames([]Broker{f.broker})
	for name := range topics {
		if topicKind(name, own) == KindNormal {
			f.topics = append(f.topics, name)
		}
	}
	slices.Sort(f.topics)
}

// brokerProps is the configuration of a broker.
func (c *Client) brokerProps(ctx context.Context, addr string) (map[string]string, error) {
	resp, err := c.ask(ctx, addr, remoting.NewRequest(remoting.ReqGetBrokerConfig, nil))
	if err != nil {
		return nil, err
	}
	return propertyLines(resp.Body), nil
}

// tryPorts connects to the ports of the broker from here.
func (c *Client) tryPorts(ctx context.Context, f *brokerFacts) {
	host, portText, err := net.SplitHostPort(f.broker.Addr)
	if err != nil {
		f.ports["main"], f.portAddrs["main"] = err, f.broker.Addr
		return
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		f.ports["main"], f.portAddrs["main"] = err, f.broker.Addr
		return
	}
	f.portAddrs["main"] = f.broker.Addr
	f.portAddrs["vip"] = net.JoinHostPort(host, strconv.Itoa(port-2))
	if ha := f.config["haListenPort"]; ha != "" && ha != "0" {
		haHost := host
		if ip := f.config["brokerIP2"]; ip != "" {
			haHost = ip
		}
		f.portAddrs["ha"] = net.JoinHostPort(haHost, ha)
	}
	for name, addr := range f.portAddrs {
		dial, cancel := context.WithTimeout(ctx, portDialTimeout)
		conn, err := (&net.Dialer{}).DialContext(dial, "tcp", c.cfg.Map.Dialled(addr))
		cancel()
		if err == nil {
			err = conn.Close()
		}
		f.ports[name] = err
	}
}

// clock is how far the broker's clock is ahead of this machine's, at least and at most:
// its age and the time of its start are told in whole seconds and milliseconds.
func (f *brokerFacts) clock() (least, most time.Duration, err error) {
	boot, bootErr := strconv.ParseInt(f.runtime["bootTimestamp"], 10, 64)
	age, ageErr := parseRuntime(f.runtime["runtime"])
	if err := errors.Join(bootErr, ageErr); err != nil {
		return 0, 0, fmt.Errorf("the broker does not tell its time: %w", err)
	}
	at := time.UnixMilli(boot).Add(age)
	return at.Sub(f.answered), at.Add(time.Second).Sub(f.asked), nil
}

// parseRuntime reads the age of a broker: [ 0 days, 0 hours, 1 minutes, 3 seconds ].
func parseRuntime(text string) (time.Duration, error) {
	var d, h, m, s int64
	if _, err := fmt.Sscanf(text, "[ %d days, %d hours, %d minutes, %d seconds ]", &d, &h, &m, &s); err != nil {
		return 0, fmt.Errorf("cannot read age %q: %w", text, err)
	}
	return time.Duration(((d*24+h)*60+m)*60+s) * time.Second, nil
}

// serverList is a list of name servers in one form, whatever its order.
func serverList(text string) string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ";")
}

// missingGroups are the groups that other brokers of its cluster have and f has not.
func (f *brokerFacts) missingGroups(others []*brokerFacts) []string {
	missing := map[string]bool{}
	for _, o := range others {
		for name := range o.groups {
			if _, ok := f.groups[name]; !ok && !message.IsSystemGroup(name) && o.broker.Cluster == f.broker.Cluster {
				missing[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}
