package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// core is what producer, reader and consumer stand on: connections, name servers,
// routes. Safe to share.
type core struct {
	cfg    Config
	conn   *remoteclient.Client
	ns     *remoteclient.NameServers
	routes *routes
	id     string // client id
	ip     netip.Addr
	log    *slog.Logger
}

// newCore checks cfg; onRequest serves requests of brokers and may be nil.
func newCore(cfg Config, onRequest func(addr string, req *remoting.Command) *remoting.Command) (*core, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	c := &core{cfg: cfg, log: cfg.Logger, ip: localIP(cfg.NameServers[0]), id: cfg.ClientID}
	if c.id == "" {
		c.id = fmt.Sprintf("%s@%d#%d", c.ip, os.Getpid(), time.Now().UnixNano())
	}
	c.conn = remoteclient.New(remoteclient.Config{
		ConnectTimeout: cfg.ConnectTimeout, RequestTimeout: cfg.Timeout, Serialize: cfg.Serialize,
		TLS: cfg.TLS, Map: cfg.Map, Credentials: cfg.Credentials, Logger: cfg.Logger, OnRequest: onRequest,
	})
	c.ns = remoteclient.NewNameServers(c.conn, cfg.NameServers)
	c.routes = newRoutes(c.askRoute, cfg.PollRoutes, cfg.Clock)
	return c, nil
}

func (c *core) close() error {
	c.routes.close()
	return c.conn.Close()
}

// localIP is the address from which this machine reaches a peer; loopback when that
// cannot be told. Nothing is sent.
func localIP(peer string) netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for a name that is slow to resolve
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", peer)
	if err != nil {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	defer func() { _ = conn.Close() }()
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// call sends a request and returns the answer; a code other than success is a
// *remoting.ResponseError. Without an earlier deadline of ctx, Config.Timeout bounds it.
func (c *core) call(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	resp, err := c.callAny(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	if resp.Code != remoting.RespSuccess {
		return nil, responseError(addr, req.Code, resp)
	}
	return resp, nil
}

// callAny is call for answers whose code the caller looks at.
func (c *core) callAny(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	return c.conn.Call(ctx, addr, req)
}

func responseError(addr string, request int32, resp *remoting.Command) error {
	return &remoting.ResponseError{
		Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(request), Addr: addr,
	}
}

// vip is the address of a broker's fast port when the configuration asks for that.
func (c *core) vip(addr string) string {
	if !c.cfg.VIPChannel {
		return addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(host, strconv.Itoa(n-2))
}
