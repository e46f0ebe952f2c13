package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"mqx/internal/tlsconf"
)

// TLSOptions hold the tls.client.* keys.
type TLSOptions struct {
	// TestMode trusts every server (tls.test.mode.enable).
	TestMode bool
	// AuthServer verifies the server's certificate (tls.client.authServer)
	// against TrustCertPath, or the system's authorities when that is empty.
	// Without it every certificate is accepted, as in Apache RocketMQ.
	AuthServer    bool
	TrustCertPath string
	// CertPath and KeyPath are the client's own certificate, KeyPassword
	// decrypts an encrypted PKCS#8 key.
	CertPath, KeyPath, KeyPassword string
	// Protocols (TLSv1.2, TLSv1.3) and Ciphers (Java's names) restrict what
	// is offered; empty means Go's defaults.
	Protocols, Ciphers []string
}

// Config reads the files and returns what Config.TLS takes. The client's own
// certificate is read again when both of its files have changed.
func (o TLSOptions) Config() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.Protocols) > 0 {
		conf.MinVersion = 0
	}
	if err := tlsconf.Restrict(conf, o.Protocols, o.Ciphers); err != nil {
		return nil, err
	}
	if (o.CertPath == "") != (o.KeyPath == "") {
		return nil, fmt.Errorf("cannot use TLS: only one of tls.client.certPath %q and tls.client.keyPath %q is set", o.CertPath, o.KeyPath)
	}
	if o.CertPath != "" {
		keys, err := tlsconf.NewKeyPair(o.CertPath, o.KeyPath, o.KeyPassword, func(error) {})
		if err != nil {
			return nil, err
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return keys.Get(), nil
		}
	}
	// The chain is checked below: Apache's clients check the authority and
	// not the host name, and brokers are dialled by address.
	conf.InsecureSkipVerify = true
	if o.TestMode || !o.AuthServer {
		return conf, nil
	}
	var roots *x509.CertPool
	if o.TrustCertPath != "" {
		var err error
		if roots, err = tlsconf.LoadPool(o.TrustCertPath); err != nil {
			return nil, err
		}
	}
	conf.VerifyConnection = func(cs tls.ConnectionState) error {
		if len(cs.PeerCertificates) == 0 {
			return errors.New("the server has shown no certificate")
		}
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range cs.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		_, err := cs.PeerCertificates[0].Verify(opts)
		return err
	}
	return conf, nil
}
