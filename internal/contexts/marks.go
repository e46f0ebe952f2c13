package contexts

import (
	"net"
	"slices"
	"strings"
)

// Marks are what the contexts of one cluster say together.
type Marks struct {
	ReadOnly  string // name of a context that marks the cluster read-only, "" for none
	Protected string // likewise protected
	Contexts  []string
}

// reached are the name servers of a context, under the addresses too that stand for
// theirs on this machine.
func (c *Context) reached() []string {
	out := slices.Clone(c.NameServers)
	for _, entry := range c.Map {
		from, to, _ := strings.Cut(entry, "=")
		for _, addr := range c.NameServers {
			host, port, err := net.SplitHostPort(addr)
			switch {
			case addr == from:
				out = append(out, to)
			case err == nil && host == from:
				out = append(out, net.JoinHostPort(to, port))
			}
		}
	}
	return out
}

// Marks finds the contexts whose name servers are among addrs, or the other way
// round: one common name server makes it the same cluster. resolve returns the IP
// addresses of a host name, nil when it does not know them; it is only asked when
// some context has a mark. Addresses are host:port.
func (f *File) Marks(addrs []string, resolve func(host string) []string) Marks {
	var m Marks
	known := map[string][]string{}
	once := func(host string) []string {
		ips, asked := known[host]
		if !asked {
			ips = resolve(host)
			known[host] = ips
		}
		return ips
	}
	for i := range f.Contexts {
		c := &f.Contexts[i]
		ask := once
		if !c.ReadOnly && !c.Protected {
			ask = nil
		}
		if !Share(c.reached(), addrs, ask) {
			continue
		}
		m.Contexts = append(m.Contexts, c.Name)
		if c.ReadOnly && m.ReadOnly == "" {
			m.ReadOnly = c.Name
		}
		if c.Protected && m.Protected == "" {
			m.Protected = c.Name
		}
	}
	return m
}

// Share reports whether two lists of addresses have a server in common, however each writes it: as a name or an address, in small
// or capital letters, short or long. resolve is that of Marks; nil asks nobody.
func Share(mine, theirs []string, resolve func(host string) []string) bool {
	there := places(theirs, resolve)
	return slices.ContainsFunc(places(mine, resolve), func(a string) bool { return slices.Contains(there, a) })
}

// places are all the ways in which the servers of a list are reached, each written in one way.
func places(list []string, resolve func(host string) []string) []string {
	var out []string
	for _, addr := range list {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			host, port = addr, ""
		}
		host = strings.ToLower(host)
		ip := net.ParseIP(host)
		if ip != nil {
			host = ip.String() // an address can be written in several ways
		}
		out = append(out, net.JoinHostPort(host, port))
		if resolve == nil || ip != nil {
			continue
		}
		for _, ip := range resolve(host) {
			out = append(out, net.JoinHostPort(ip, port))
		}
	}
	return out
}
