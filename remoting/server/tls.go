package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"mqx/internal/tlsconf"
)

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

var errNoCertificate = errors.New("cannot require TLS without a certificate: set tls.server.certPath and tls.server.keyPath, or tls.test.mode.enable")

// newTLS reads what cfg names. It returns nil when TLS connections are not
// served: mode disabled, or permissive without a certificate.
func newTLS(cfg *TLSConfig, log *slog.Logger) (*tls.Config, error) {
	if cfg.Mode == TLSDisabled {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(cfg.Protocols) > 0 {
		conf.MinVersion = 0
	}
	if err := tlsconf.Restrict(conf, cfg.Protocols, cfg.Ciphers); err != nil {
		return nil, err
	}
	switch {
	case cfg.CertPath != "" && cfg.KeyPath != "":
		keys, err := tlsconf.NewKeyPair(cfg.CertPath, cfg.KeyPath, cfg.KeyPassword, func(err error) {
			log.Warn("changed TLS files cannot be used, the former stay", "error", err)
		})
		if err != nil {
			return nil, err
		}
		conf.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return keys.Get(), nil }
	case cfg.CertPath != "" || cfg.KeyPath != "":
		return nil, fmt.Errorf("cannot serve TLS: only one of tls.server.certPath %q and tls.server.keyPath %q is set", cfg.CertPath, cfg.KeyPath)
	case cfg.TestMode:
		pair, err := tlsconf.SelfSigned(time.Now())
		if err != nil {
			return nil, err
		}
		conf.Certificates = []tls.Certificate{pair}
	case cfg.Mode == TLSEnforcing:
		return nil, errNoCertificate
	default:
		return nil, nil
	}
	return conf, authenticate(conf, cfg)
}

// authenticate sets what is asked of clients.
func authenticate(conf *tls.Config, cfg *TLSConfig) error {
	var pool *x509.CertPool
	if cfg.TrustCertPath != "" {
		var err error
		if pool, err = tlsconf.LoadPool(cfg.TrustCertPath); err != nil {
			return err
		}
	}
	verify := cfg.AuthClient
	switch cfg.ClientAuth {
	case TLSAuthRequire:
		conf.ClientAuth = tls.RequireAnyClientCert
		if verify {
			conf.ClientAuth = tls.RequireAndVerifyClientCert
		}
	case TLSAuthOptional:
		conf.ClientAuth = tls.RequestClientCert
		if verify {
			conf.ClientAuth = tls.VerifyClientCertIfGiven
		}
	default:
		return nil
	}
	conf.ClientCAs = pool // nil: the system's
	return nil
}
