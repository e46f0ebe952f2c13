package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"mqx/remoting/server"
)

// advertised is the address that clients and name servers get, and why.
type advertised struct {
	IP   string // address or host name, without brackets
	Port int
	Why  string
}

// Addr is the form host:port, with brackets for IPv6.
func (a advertised) Addr() string { return net.JoinHostPort(a.IP, strconv.Itoa(a.Port)) }

// routes are the questions that the choice of an address asks of the machine.
type routes struct {
	// Local is the address from which a packet to a host would leave.
	Local func(hostport string) (netip.Addr, error)
	// Interfaces lists the machine's addresses.
	Interfaces func() ([]netip.Addr, error)
}

// machine asks the operating system. No packet is sent.
var machine = routes{
	Local: func(hostport string) (netip.Addr, error) {
		c, err := net.Dial("udp", hostport)
		if err != nil {
			return netip.Addr{}, err
		}
		ap, err := netip.ParseAddrPort(c.LocalAddr().String())
		return ap.Addr().Unmap().WithZone(""), errors.Join(err, c.Close())
	},
	Interfaces: server.MachineAddrs,
}

// chooseAddress picks the address to advertise: the configured one; else a
// specific address that is bound to; else that of the route to a name server;
// else, where name servers are on this machine or there are none, that of the
// default route; else the first address of the machine.
func chooseAddress(configured, bind string, nameServers []string, m routes) (ip, why string) {
	if configured != "" {
		return strings.Trim(configured, "[]"), "configured (brokerIP1)"
	}
	if a, err := netip.ParseAddr(strings.Trim(bind, "[]")); err == nil && !a.IsUnspecified() {
		return a.WithZone("").String(), "the address bound to (bindAddress or --listen)"
	}
	for _, ns := range nameServers {
		if a, err := m.Local(ns); err == nil && !a.IsLoopback() && !a.IsUnspecified() {
			return a.String(), "the address of the route to name server " + ns
		}
	}
	if a, err := m.Local("198.51.100.1:9"); err == nil && !a.IsLoopback() && !a.IsUnspecified() {
		return a.String(), "the address of the default route, since no name server is on another machine"
	}
	all, _ := m.Interfaces()
	i := slices.IndexFunc(all, func(a netip.Addr) bool { return !a.IsLoopback() && !a.IsLinkLocalUnicast() && a.Is4() })
	if i < 0 {
		i = slices.IndexFunc(all, func(a netip.Addr) bool { return !a.IsLoopback() && !a.IsLinkLocalUnicast() })
	}
	if i >= 0 {
		return all[i].String(), "the first address of this machine, which has no default route"
	}
	return "127.0.0.1", "this machine has no other address"
}

// resolveHost is the IP that goes into records and message ids for an
// advertised host.
func resolveHost(ctx context.Context, host string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().WithZone(""), nil
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(list) == 0 {
		return netip.Addr{}, fmt.Errorf("cannot resolve the advertised address %q: %w", host, err)
	}
	slices.SortStableFunc(list, func(a, b netip.Addr) int {
		return boolInt(b.Unmap().Is4()) - boolInt(a.Unmap().Is4())
	})
	return list[0].Unmap(), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
