package client

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// AddrMap says which address is dialled in place of one that a name server gives:
// the addresses of containers, or behind a translation of addresses, cannot be
// reached from everywhere. It must not be changed once a client has it.
type AddrMap map[string]string

// ParseAddrMap reads entries FROM=TO. FROM and TO are both host:port, or both a host
// alone, which holds for every port that has no entry of its own. The same FROM with
// two different TO is an error, as is a TO that is the FROM of another entry: nothing
// is looked up twice.
func ParseAddrMap(entries []string) (AddrMap, error) {
	m := AddrMap{}
	for _, e := range entries {
		from, to, ok := strings.Cut(e, "=")
		if !ok || strings.Contains(to, "=") {
			return nil, fmt.Errorf("cannot use mapping %q: it has the form ADDR=ADDR, as in 172.17.0.3:10911=127.0.0.1:20911", e)
		}
		from, to, err := parsePair(strings.TrimSpace(from), strings.TrimSpace(to))
		if err != nil {
			return nil, fmt.Errorf("cannot use mapping %q: %w", e, err)
		}
		if was, ok := m[from]; ok && was != to {
			return nil, fmt.Errorf("cannot use mapping %q: %s stands for %s already", e, was, from)
		}
		m[from] = to
	}
	for from, to := range m {
		if again, ok := m[to]; ok && again != to {
			return nil, fmt.Errorf("cannot use mapping %q: %s is mapped itself, to %s", from+"="+to, to, again)
		}
	}
	return m, nil
}

var errPair = errors.New("an address with a port needs one with a port, a host needs a host")

func parsePair(from, to string) (string, string, error) {
	f, ferr := parseAddr(from)
	t, terr := parseAddr(to)
	switch {
	case ferr == nil && terr == nil:
		return f, t, nil
	case ferr == nil || terr == nil:
		return "", "", errPair
	}
	hosts := [2]string{from, to}
	for i, h := range hosts {
		addr, err := parseAddr(net.JoinHostPort(strings.Trim(h, "[]"), "1"))
		if err != nil {
			return "", "", err
		}
		hosts[i], _, _ = net.SplitHostPort(addr)
	}
	return hosts[0], hosts[1], nil
}

// Dialled is the address to dial for addr: addr itself where nothing stands for it.
func (m AddrMap) Dialled(addr string) string {
	if len(m) == 0 {
		return addr
	}
	if to, ok := m[addr]; ok {
		return to
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if to, ok := m[host]; ok {
		return net.JoinHostPort(to, port)
	}
	return addr
}

// Entries are the mappings as ParseAddrMap takes them, sorted.
func (m AddrMap) Entries() []string {
	var out []string
	for from, to := range m {
		out = append(out, from+"="+to)
	}
	slices.Sort(out)
	return out
}
