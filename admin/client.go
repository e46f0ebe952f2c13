package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/client"
	"mqx/internal/fastjson"
	"mqx/internal/sorted"
	"mqx/internal/words"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// Config says which cluster is managed and how. Zero values mean the defaults.
type Config struct {
	NameServers []string
	Credentials *remoteclient.Credentials
	TLS         *tls.Config
	// Map dials other addresses than those that name servers give.
	Map remoteclient.AddrMap
	// BrokerTimeout bounds each request to one broker or name server, default 3 s.
	BrokerTimeout time.Duration
	// Parallel is the number of requests under way at a time, default 16.
	Parallel int
	Logger   *slog.Logger
}

// Defaults of Config.
const (
	DefaultBrokerTimeout = 3 * time.Second
	DefaultParallel      = 16
)

// Client manages a cluster. It is safe to share.
type Client struct {
	cfg  Config
	conn *remoteclient.Client
	ns   *remoteclient.NameServers

	requests atomic.Int64
	pops     popLooks
}

// Requests is how many requests the client has sent to brokers and name servers that it
// asked by address. Those that look for any name server that knows are not among them.
func (c *Client) Requests() int64 { return c.requests.Load() }

// New checks cfg. It connects nowhere yet.
func New(cfg Config) (*Client, error) {
	if len(cfg.NameServers) == 0 {
		return nil, errors.New("cannot manage a cluster: no name server is given")
	}
	if cfg.BrokerTimeout <= 0 {
		cfg.BrokerTimeout = DefaultBrokerTimeout
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = DefaultParallel
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{cfg: cfg}
	c.conn = remoteclient.New(remoteclient.Config{
		ConnectTimeout: cfg.BrokerTimeout, RequestTimeout: cfg.BrokerTimeout, TLS: cfg.TLS, Map: cfg.Map, Credentials: cfg.Credentials, Logger: cfg.Logger,
	})
	c.ns = remoteclient.NewNameServers(c.conn, cfg.NameServers)
	return c, nil
}

// Close closes the connections. It is idempotent.
func (c *Client) Close() error { return c.conn.Close() }

// TargetError is the failure of one broker or name server in a request to several.
type TargetError struct {
	Broker string // broker name, empty for a name server or where it is not known
	Addr   string
	Err    error
}

// Error names the target and the cause.
func (e TargetError) Error() string {
	who := e.Addr
	if e.Broker != "" {
		who = e.Broker + " (" + e.Addr + ")"
	}
	return who + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e TargetError) Unwrap() error { return e.Err }

// NotFoundError says that a topic, group, broker or cluster does not exist.
type NotFoundError struct {
	Kind  string // topic, group, broker, cluster
	Name  string
	Known []string // some that exist
}

// maxKnown bounds the names that a NotFoundError lists.
const maxKnown = 10

// Error names what is missing and, for brokers and clusters, what is known.
func (e *NotFoundError) Error() string {
	if e.Name == "" {
		return "no " + e.Kind + " is registered at the name servers"
	}
	s := e.Kind + " " + e.Name + " not found"
	for i, k := range e.Known {
		switch i {
		case 0:
			s += "; known: " + k
		case maxKnown:
			return s + ", …"
		default:
			s += ", " + k
		}
	}
	return s
}

// AmbiguousError says that a change names no cluster while there are several.
type AmbiguousError struct{ Clusters []string }

// Error lists the clusters.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("the change names neither a cluster nor a broker, and there are %s: %v", words.Count(len(e.Clusters), "cluster"), e.Clusters)
}

// Broker is one broker process as the name server knows it.
type Broker struct {
	Cluster string
	Name    string
	ID      int64
	Addr    string
}

func (b Broker) fail(err error) TargetError {
	return TargetError{Broker: b.Name, Addr: b.Addr, Err: err}
}

// Target selects brokers: a cluster, a broker name or an address. Empty means all masters.
type Target struct {
	Cluster string `json:"cluster,omitempty"`
	Broker  string `json:"broker,omitempty"` // name or host:port
}

// Cluster lists all brokers that the name server knows, sorted by cluster, name and id.
func (c *Client) Cluster(ctx context.Context) ([]Broker, error) {
	info, err := c.clusterInfo(ctx)
	if err != nil {
		return nil, err
	}
	return brokersOf(info), nil
}

// clusterInfo lists the brokers. A name server without a single one may have been
// restarted empty: the others are asked too.
func (c *Client) clusterInfo(ctx context.Context) (*remoting.ClusterInfo, error) {
	info := &remoting.ClusterInfo{}
	resp, err := c.askNameServers(ctx, remoting.NewRequest(remoting.ReqGetBrokerClusterInfo, nil), func(r *remoting.Command) bool {
		var i remoting.ClusterInfo
		return r.Code == remoting.RespSuccess && fastjson.Unmarshal(r.Body, &i) == nil && len(i.BrokerAddrTable) > 0
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list brokers: %w", err)
	}
	if err := fastjson.Unmarshal(resp.Body, info); err != nil {
		return nil, fmt.Errorf("cannot read list of brokers: %w", err)
	}
	return info, nil
}

// askNameServers asks for what one name server may not know: see client.AskNameServers.
func (c *Client) askNameServers(ctx context.Context, req *remoting.Command, good func(*remoting.Command) bool) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.BrokerTimeout)
	defer cancel()
	resp, err := client.AskNameServers(ctx, c.conn, c.ns, req, good)
	if err != nil {
		return nil, &PeerError{RoleNameServer, c.ns.Current(), err}
	}
	if resp.Code != remoting.RespSuccess {
		return nil, responseError(c.ns.Current(), req, resp)
	}
	return resp, nil
}

func succeeded(r *remoting.Command) bool { return r.Code == remoting.RespSuccess }

// ask sends a request to one address; a code other than success is a *remoting.ResponseError.
func (c *Client) ask(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	return c.askWithin(ctx, c.cfg.BrokerTimeout, addr, req)
}

// askWithin is ask with another limit.
func (c *Client) askWithin(ctx context.Context, limit time.Duration, addr string, req *remoting.Command) (*remoting.Command, error) {
	if err := avoided(ctx, addr); err != nil {
		return nil, err
	}
	round := roundOf(ctx)
	if err := round.silence(addr); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c.requests.Add(1)
	resp, err := c.conn.Call(limited, addr, req)
	role := c.roleAt(addr, req.Code)
	switch {
	case err != nil:
		err = &PeerError{role, addr, err}
	case resp.Code != remoting.RespSuccess:
		err = responseError(addr, req, resp)
	}
	round.note(addr, req.Code, role != RoleNameServer, err, ctx.Err() == nil && limited.Err() != nil)
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func responseError(addr string, req, resp *remoting.Command) error {
	return &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(req.Code), Addr: addr}
}

// hasCode reports whether err is an answer with this code.
func hasCode(err error, code int32) bool {
	var re *remoting.ResponseError
	return errors.As(err, &re) && re.Code == code
}

// askBody is ask for an answer with a JSON body.
func askBody[T any](ctx context.Context, c *Client, addr string, req *remoting.Command) (*T, error) {
	resp, err := c.ask(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := fastjson.Unmarshal(resp.Body, v); err != nil {
		return nil, fmt.Errorf("cannot read answer to %s: %w", remoting.RequestName(req.Code), err)
	}
	return v, nil
}

// primaries are the brokers of a target that speak for their name: the master, else
// the smallest id there is.
func (c *Client) primaries(ctx context.Context, t Target) ([]Broker, error) {
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return selectPrimaries(all, t)
}

func selectPrimaries(all []Broker, t Target) ([]Broker, error) {
	var clusters, names []string
	for _, b := range all {
		clusters = append(clusters, b.Cluster)
		names = append(names, b.Name)
	}
	clusters, names = slices.Compact(clusters), slices.Compact(names)
	if t.Cluster != "" && !slices.Contains(clusters, t.Cluster) {
		return nil, &NotFoundError{Kind: "cluster", Name: t.Cluster, Known: clusters}
	}
	if isAddress(t.Broker) {
		for _, b := range all {
			if b.Addr == t.Broker {
				return []Broker{b}, nil
			}
		}
		return []Broker{{Addr: t.Broker}}, nil // a broker need not be registered to be spoken to
	}
	var out []Broker
	for _, b := range all {
		if t.Cluster != "" && b.Cluster != t.Cluster || t.Broker != "" && b.Name != t.Broker {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Name == b.Name && out[n-1].Cluster == b.Cluster {
			continue // a larger id of the same name
		}
		out = append(out, b)
	}
	if len(out) == 0 && t.Broker != "" {
		return nil, &NotFoundError{Kind: "broker", Name: t.Broker, Known: names}
	}
	return out, nil
}

// isAddress: a broker given as host:port and not by its name.
func isAddress(broker string) bool {
	_, _, err := net.SplitHostPort(broker)
	return err == nil
}

// changeTargets are the masters that a change applies to. A broker without a master is
// an error of its own.
func (c *Client) changeTargets(ctx context.Context, t Target) (masters []Broker, errs []TargetError, err error) {
	brokers, err := c.primaries(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if t.Cluster == "" && t.Broker == "" {
		var clusters []string
		for _, b := range brokers {
			clusters = append(clusters, b.Cluster)
		}
		if clusters = slices.Compact(clusters); len(clusters) > 1 {
			return nil, nil, &AmbiguousError{Clusters: clusters}
		}
	}
	for _, b := range brokers {
		if b.ID != 0 {
			errs = append(errs, b.fail(errors.New("the broker has no master")))
			continue
		}
		masters = append(masters, b)
	}
	if len(masters)+len(errs) == 0 {
		return nil, nil, &NotFoundError{Kind: "broker"}
	}
	return masters, errs, nil
}

// each calls f for every broker, several at a time, and collects the failures. What f
// changes it must guard itself; mu is there for that.
func (c *Client) each(brokers []Broker, f func(mu *sync.Mutex, b Broker) error) []TargetError {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		errs  []TargetError
		slots = make(chan struct{}, c.cfg.Parallel)
	)
	for _, b := range brokers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := f(&mu, b); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, b.fail(err))
			}
		})
	}
	wg.Wait()
	sortErrors(errs)
	return errs
}

func sortErrors(errs []TargetError) {
	sorted.Stably(errs, func(a, b TargetError) int {
		return cmp.Or(cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.Addr, b.Addr))
	})
}
