package server

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestExposure(t *testing.T) {
	machine := func(list ...string) func() ([]netip.Addr, error) {
		return func() ([]netip.Addr, error) {
			var out []netip.Addr
			for _, a := range list {
				out = append(out, netip.MustParseAddr(a))
			}
			return out, nil
		}
	}
	broken := func() ([]netip.Addr, error) { return nil, errors.New("no answer") }
	verified := TLSConfig{Mode: TLSEnforcing, ClientAuth: TLSAuthRequire, AuthClient: true}
	unverified := TLSConfig{Mode: TLSEnforcing, ClientAuth: TLSAuthRequire}
	for _, tt := range []struct {
		host       string
		tls        TLSConfig
		interfaces func() ([]netip.Addr, error)
		want       string
	}{
		{"127.0.0.1", TLSConfig{}, machine("8.8.8.8"), ""},
		{"10.0.0.1", TLSConfig{}, machine(), ""},
		{"192.168.1.1", TLSConfig{}, machine(), ""},
		{"169.254.1.1", TLSConfig{}, machine(), ""},
		{"100.64.0.1", TLSConfig{}, machine(), ""},
		{"[::1]", TLSConfig{}, machine(), ""},
		{"fd00::1", TLSConfig{}, machine(), ""},
		{"fe80::1", TLSConfig{}, machine(), ""},
		{"8.8.8.8", TLSConfig{}, machine(), "a public address: 8.8.8.8"},
		{"[2001:db8::1]", TLSConfig{}, machine(), "a public address: 2001:db8::1"},
		{"0.0.0.0", TLSConfig{}, machine("127.0.0.1", "192.168.1.1", "100.64.0.1", "fe80::1", "fd00::1"), ""},
		{"0.0.0.0", TLSConfig{}, machine("192.168.1.1", "8.8.8.8", "9.9.9.9"), "a public address: 8.8.8.8, 9.9.9.9"},
		{"0.0.0.0", TLSConfig{}, machine("192.168.1.1", "2001:db8::1"), "a public address: 2001:db8::1"},
		{"::", TLSConfig{}, machine("::ffff:8.8.8.8"), "a public address: 8.8.8.8"},
		{"0.0.0.0", TLSConfig{}, broken, "which may have a public one: no answer"},
		{"broker.example", TLSConfig{}, machine(), "broker.example, which may be a public address"},
		{"8.8.8.8", verified, machine(), ""},
		{"8.8.8.8", unverified, machine(), "a public address: 8.8.8.8"},
	} {
		got := Exposure(tt.host, &tt.tls, tt.interfaces)
		if (got == "") != (tt.want == "") || !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.host, got, tt.want)
		}
	}
}

func TestTLSExplain(t *testing.T) {
	for want, c := range map[string]TLSConfig{
		"TLS disabled": {Mode: TLSDisabled, TestMode: true},
		"TLS permissive, self-signed certificate (no tls.server.certPath)": {TestMode: true},
		"TLS permissive, but no certificate: TLS connections are refused":  {Mode: TLSPermissive},
		"TLS enforcing, certificate a.pem, client certificates optional":   {Mode: TLSEnforcing, CertPath: "a.pem", ClientAuth: TLSAuthOptional},
		"TLS enforcing, certificate a.pem, client certificates required, not verified (tls.server.authClient)": {
			Mode: TLSEnforcing, CertPath: "a.pem", ClientAuth: TLSAuthRequire,
		},
		"TLS enforcing, certificate a.pem, client certificates required and verified": {
			Mode: TLSEnforcing, CertPath: "a.pem", ClientAuth: TLSAuthRequire, AuthClient: true,
		},
	} {
		if got := c.Explain(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
