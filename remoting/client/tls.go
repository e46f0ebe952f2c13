package client

import "crypto/tls"

// TLSOptions hold the tls.client.* keys.
type TLSOptions struct {
	// TestMode trusts every server (tls.test.mode.enable).
	TestMode bool
	// AuthServer verifies the server's certificate (tls.client.authServer)
	// against TrustCertPath, or the system's authorities when that is empty.
	AuthServer    bool
	TrustCertPath string
	// CertPath and KeyPath are the client's own certificate, KeyPassword
	// decrypts an encrypted PKCS#8 key.
	CertPath, KeyPath, KeyPassword string
	Protocols, Ciphers             []string
}

// Config reads the files and returns what Config.TLS takes.
func (o TLSOptions) Config() (*tls.Config, error) { panic("not yet") }
