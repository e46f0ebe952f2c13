package server

import "fmt"

// TLSMode says what a server does with plain and with TLS connections
// (tls.server.mode).
type TLSMode string

// The three modes. "" means TLSPermissive, as in Apache RocketMQ.
const (
	TLSDisabled   TLSMode = "disabled"   // a TLS client is dropped
	TLSPermissive TLSMode = "permissive" // both are served
	TLSEnforcing  TLSMode = "enforcing"  // a plain client is dropped
)

// TLSClientAuth says what a server wants of a client's certificate
// (tls.server.need.client.auth).
type TLSClientAuth string

// Client certificates: not asked for, checked when there is one, required.
const (
	TLSAuthNone     TLSClientAuth = "none"
	TLSAuthOptional TLSClientAuth = "optional"
	TLSAuthRequire  TLSClientAuth = "require"
)

// TLSConfig holds the tls.* keys of a server.
type TLSConfig struct {
	Mode TLSMode
	// TestMode makes a self-signed certificate when CertPath is empty
	// (tls.test.mode.enable).
	TestMode bool
	// CertPath and KeyPath name PEM files; both are read again when both have
	// changed. KeyPassword decrypts an encrypted PKCS#8 key.
	CertPath, KeyPath, KeyPassword string
	// TrustCertPath names the PEM file of the authorities of client
	// certificates (tls.server.trustCertPath); AuthClient verifies against it
	// (tls.server.authClient).
	TrustCertPath string
	AuthClient    bool
	// ClientAuth defaults to TLSAuthNone.
	ClientAuth TLSClientAuth
	// Protocols (TLSv1.2, TLSv1.3) and Ciphers (Java's names) restrict what
	// is offered; empty means Go's defaults.
	Protocols, Ciphers []string
}

// Validate reports a mode or client authentication that does not exist.
func (c *TLSConfig) Validate() error {
	switch c.Mode {
	case "", TLSDisabled, TLSPermissive, TLSEnforcing:
	default:
		return fmt.Errorf("cannot use TLS mode %q: disabled, permissive and enforcing are possible", c.Mode)
	}
	switch c.ClientAuth {
	case "", TLSAuthNone, TLSAuthOptional, TLSAuthRequire:
	default:
		return fmt.Errorf("cannot use client authentication %q: none, optional and require are possible", c.ClientAuth)
	}
	return nil
}
