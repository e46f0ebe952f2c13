package broker

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// N088: the address of the route to the name server, not that of some bridge.
func TestChooseAddress(t *testing.T) {
	addrs := func(list ...string) func() ([]netip.Addr, error) {
		return func() ([]netip.Addr, error) {
			var out []netip.Addr
			for _, a := range list {
				out = append(out, netip.MustParseAddr(a))
			}
			return out, nil
		}
	}
	m := func(local map[string]string, ifs ...string) routes {
		return routes{
			Local: func(hp string) (netip.Addr, error) {
				if a, ok := local[hp]; ok {
					return netip.ParseAddr(a)
				}
				return netip.Addr{}, errors.New("network is unreachable")
			},
			Interfaces: addrs(ifs...),
		}
	}
	const def = "198.51.100.1:9"
	tests := []struct {
		name, configured, bind string
		servers                []string
		m                      routes
		ip, why                string
	}{
		{"configured", "10.1.1.1", "0.0.0.0", []string{"ns:9876"}, m(nil), "10.1.1.1", "configured"},
		{"configured IPv6 in brackets", "[fd00::1]", "", nil, m(nil), "fd00::1", "configured"},
		{"bound to one address", "", "10.2.2.2", []string{"ns:9876"}, m(map[string]string{"ns:9876": "10.0.0.5"}), "10.2.2.2", "bound to"},
		{"route", "", "0.0.0.0", []string{"ns:9876"}, m(map[string]string{"ns:9876": "10.0.0.5", def: "192.0.2.1"}, "172.17.0.1", "10.0.0.5"), "10.0.0.5", "route to name server ns:9876"},
		{"the first that has a route", "", "0.0.0.0", []string{"a:1", "b:2"}, m(map[string]string{"b:2": "10.0.0.6"}), "10.0.0.6", "name server b:2"},
		{"name server on this machine", "", "0.0.0.0", []string{"127.0.0.1:9876"}, m(map[string]string{"127.0.0.1:9876": "127.0.0.1", def: "10.0.0.7"}), "10.0.0.7", "default route"},
		{"no name server", "", "", nil, m(map[string]string{def: "10.0.0.8"}), "10.0.0.8", "default route"},
		{"no default route", "", "::", nil, m(nil, "127.0.0.1", "fe80::1", "fd00::5", "10.0.0.9"), "10.0.0.9", "no default route"},
		{"IPv6 only", "", "::", nil, m(nil, "::1", "fe80::1", "fd00::5"), "fd00::5", "no default route"},
		{"nothing", "", "", nil, m(nil, "127.0.0.1", "::1"), "127.0.0.1", "no other address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ip, why := chooseAddress(tt.configured, tt.bind, tt.servers, tt.m)
			if ip != tt.ip || !strings.Contains(why, tt.why) {
				t.Errorf("%s (%s), want %s (%s)", ip, why, tt.ip, tt.why)
			}
		})
	}
	if got := (advertised{IP: "fd00::1", Port: 10911}).Addr(); got != "[fd00::1]:10911" {
		t.Errorf("N090: %s", got)
	}
}
