package server

import (
	"net"
	"net/netip"
	"strings"
)

// Exposure says in one line that a listener on host (an address, with or without
// brackets, or a host name) can be reached from networks that are not private
// although nothing here checks who comes; "" when that is not so. Interfaces
// lists the machine's addresses (MachineAddrs). Listening on 0.0.0.0 or :: opens
// the IPv4 and the IPv6 addresses of the machine. A peer is known only where TLS
// is enforced and its certificate required and verified.
func Exposure(host string, c *TLSConfig, interfaces func() ([]netip.Addr, error)) string {
	if c.Mode == TLSEnforcing && c.ClientAuth == TLSAuthRequire && c.AuthClient {
		return ""
	}
	const what = "listens without authentication on "
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return what + host + ", which may be a public address"
	}
	if !ip.IsUnspecified() {
		if isPublic(ip) {
			return what + "a public address: " + ip.String()
		}
		return ""
	}
	all, err := interfaces()
	if err != nil {
		return what + "every address of this machine, which may have a public one: " + err.Error()
	}
	var open []string
	for _, a := range all {
		if isPublic(a) {
			open = append(open, a.Unmap().String())
		}
	}
	if len(open) == 0 {
		return ""
	}
	return what + "a public address: " + strings.Join(open, ", ")
}

// MachineAddrs are the addresses of this machine's interfaces, without zones.
func MachineAddrs() ([]netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap().WithZone(""))
		}
	}
	return out, nil
}

func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !carrierGrade.Contains(ip)
}

// carrierGrade is the shared address space of RFC 6598, not reachable from outside.
var carrierGrade = netip.MustParsePrefix("100.64.0.0/10")

// Explain says in one line what the configuration means for a client.
func (c *TLSConfig) Explain() string {
	mode := c.Mode
	if mode == "" {
		mode = TLSPermissive
	}
	text := "TLS " + string(mode)
	switch {
	case mode == TLSDisabled:
		return text
	case c.CertPath != "":
		text += ", certificate " + c.CertPath
	case c.TestMode:
		text += ", self-signed certificate (no tls.server.certPath)"
	default:
		return text + ", but no certificate: TLS connections are refused"
	}
	switch {
	case c.ClientAuth == TLSAuthRequire && c.AuthClient:
		text += ", client certificates required and verified"
	case c.ClientAuth == TLSAuthRequire:
		text += ", client certificates required, not verified (tls.server.authClient)"
	case c.ClientAuth == TLSAuthOptional:
		text += ", client certificates optional"
	}
	return text
}
