package broker

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"mqx/internal/props"
	"mqx/remoting/client"
)

// lookupTimeout bounds one look-up of the name servers' names.
const lookupTimeout = 5 * time.Second

// nameServerList is the list as it is now: the configured text, re-read from
// the file when it came from there, with names resolved to all their addresses
// where that is asked for.
func (b *Broker) nameServerList(ctx context.Context) ([]string, error) {
	cfg := b.cfg()
	addrs, err := parseServers(cfg.namesrvText())
	if err != nil || !cfg.DNSLookup {
		return addrs, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var out []string
	for _, a := range addrs {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(host); err == nil {
			out = append(out, a)
			continue
		}
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		for _, ip := range ips {
			out = append(out, net.JoinHostPort(ip.Unmap().WithZone("").String(), port))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// parseServers reads a list of name servers, which may be empty.
func parseServers(text string) ([]string, error) {
	if strings.Trim(text, " \t;,") == "" {
		return nil, nil
	}
	return client.ParseAddrs(text)
}

// namesrvText is the configured list; of a file that has changed since the
// start its present value.
func (c *Config) namesrvText() string {
	if c.Source == "" || !c.loaded.Set["namesrvAddr"] || c.loaded.namesrv != c.NamesrvAddr {
		return c.NamesrvAddr // not from the file, or overridden since
	}
	f, err := props.Load(c.Source)
	if err != nil {
		return c.NamesrvAddr
	}
	if e, ok := f.Get("namesrvAddr"); ok && e.Value != "" {
		return e.Value
	}
	return c.NamesrvAddr
}

// refreshNameServers looks for added and removed name servers.
func (b *Broker) refreshNameServers(ctx context.Context) {
	if b.fence.given() {
		return
	}
	list, err := b.nameServerList(ctx)
	if err != nil {
		b.log.Warn("the list of name servers could not be read again; the old one stays", "error", err)
		return
	}
	b.registrar.SetServers(list)
}
