package nameserver

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Explain says for the start line where the server listens, where the key-value table
// lies, what the configuration asked for and has no effect, and warnings.
func (c *Config) Explain() []string { return c.explain(c.ListenAddr()) }

// Explain is Config.Explain with the address that is really listened on, once Ready.
func (s *Server) Explain() []string {
	cfg := s.cfg.Load()
	addr := cfg.ListenAddr()
	if a := s.net.Addr(); a != nil {
		addr = a.String()
	}
	return cfg.explain(addr)
}

func (c *Config) explain(listen string) []string {
	path, err := expandHome(c.KVConfigPath)
	if err != nil {
		path = c.KVConfigPath
	}
	out := []string{"listens on " + listen, "key-value table " + path}
	if public := publicAddrs(c.BindAddress); len(public) > 0 {
		out = append(out, fmt.Sprintf("warning: listens on a public address without authentication: %s", strings.Join(public, ", ")))
	}
	return append(out, c.Warnings()...)
}

// publicAddrs are the addresses reachable from anywhere that listening on host opens.
func publicAddrs(host string) []string {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return nil // a name: whoever gave it knows what it means
	}
	if !ip.IsUnspecified() {
		if isPublic(ip) {
			return []string{ip.String()}
		}
		return nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !isPublic(p.Addr()) {
			continue
		}
		if ip.Is4() && !p.Addr().Unmap().Is4() {
			continue
		}
		out = append(out, p.Addr().String())
	}
	return out
}

func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	shared := netip.MustParsePrefix("100.64.0.0/10") // carrier-grade NAT
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !shared.Contains(ip)
}
