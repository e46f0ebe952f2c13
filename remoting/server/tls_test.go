package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/remoting/client"
	"mqx/remoting/server"
)

// authority issues certificates for a test.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	path string
}

func newAuthority(t testing.TB, name string) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.path = a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue writes a certificate and its key.
func (a *authority) issue(name string) (certPath, keyPath string) {
	a.t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	pkcs8, _ := x509.MarshalPKCS8PrivateKey(key)
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", pkcs8)
}

func clientTLS(t testing.TB, o client.TLSOptions) *tls.Config {
	t.Helper()
	conf, err := o.Config()
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

func callBody(t testing.TB, c *client.Client, addr, body string) (string, error) {
	resp, err := c.Call(t.Context(), addr, request(codeBatch, 0, body))
	if err != nil {
		return "", err
	}
	return string(resp.Body), nil
}

func TestTLSModes(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		for _, tc := range []struct {
			mode             server.TLSMode
			plainOK, cryptOK bool
		}{
			{server.TLSDisabled, true, false},
			{server.TLSPermissive, true, true},
			{"", true, true},
			{server.TLSEnforcing, false, true},
		} {
			cfg.TLS = server.TLSConfig{Mode: tc.mode, TestMode: true}
			s := start(t, cfg, echoMux(t))
			plain := newClient(t, client.Config{})
			crypt := newClient(t, client.Config{TLS: clientTLS(t, client.TLSOptions{TestMode: true})})
			for _, body := range []string{"x", strings.Repeat("y", 1<<20)} {
				if got, err := callBody(t, plain, s.Addr().String(), body); (err == nil && got == body) != tc.plainOK {
					t.Errorf("mode %q, plain: %d bytes, %v", tc.mode, len(got), err)
				}
				if got, err := callBody(t, crypt, s.Addr().String(), body); (err == nil && got == body) != tc.cryptOK {
					t.Errorf("mode %q, TLS: %d bytes, %v", tc.mode, len(got), err)
				}
			}
			encrypted, open := 0, 0
			s.Conns(func(c *server.Conn) bool {
				open++
				if c.TLS() {
					encrypted++
				}
				return true
			})
			if tc.cryptOK && encrypted != 1 || tc.plainOK && open-encrypted != 1 {
				t.Errorf("mode %q: %d of %d connections are encrypted", tc.mode, encrypted, open)
			}
			_, _ = plain.Close(), crypt.Close()
			eventually(t, "all closed", func() bool { return s.Stats().Connections[server.StateReady] == 0 })
		}
	})
}

func TestTLSClientAuth(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	cert, key := ours.issue("server")
	goodCert, goodKey := ours.issue("client")
	badCert, badKey := theirs.issue("stranger")
	for _, tc := range []struct {
		auth             server.TLSClientAuth
		verify           bool
		none, good, evil bool
	}{
		{server.TLSAuthNone, true, true, true, true},
		{server.TLSAuthOptional, true, true, true, false},
		{server.TLSAuthOptional, false, true, true, true},
		{server.TLSAuthRequire, true, false, true, false},
		{server.TLSAuthRequire, false, false, true, true},
	} {
		s := start(t, server.Config{TLS: server.TLSConfig{
			Mode: server.TLSEnforcing, CertPath: cert, KeyPath: key,
			TrustCertPath: ours.path, AuthClient: tc.verify, ClientAuth: tc.auth,
		}}, echoMux(t))
		for _, cl := range []struct {
			name      string
			cert, key string
			want      bool
		}{{"no certificate", "", "", tc.none}, {"good", goodCert, goodKey, tc.good}, {"stranger", badCert, badKey, tc.evil}} {
			c := newClient(t, client.Config{TLS: clientTLS(t, client.TLSOptions{
				AuthServer: true, TrustCertPath: ours.path, CertPath: cl.cert, KeyPath: cl.key,
			})})
			if _, err := callBody(t, c, s.Addr().String(), "x"); (err == nil) != cl.want {
				t.Errorf("%s, verify %v, %s: %v", tc.auth, tc.verify, cl.name, err)
			}
		}
	}
	// A client that trusts another authority refuses the server.
	s := start(t, server.Config{TLS: server.TLSConfig{CertPath: cert, KeyPath: key}}, echoMux(t))
	c := newClient(t, client.Config{TLS: clientTLS(t, client.TLSOptions{AuthServer: true, TrustCertPath: theirs.path})})
	if _, err := callBody(t, c, s.Addr().String(), "x"); err == nil {
		t.Error("a server of an authority that is not trusted was accepted")
	}
}

func TestTLSReload(t *testing.T) {
	a := newAuthority(t, "ca")
	cert, key := a.issue("server")
	s := start(t, server.Config{TLS: server.TLSConfig{CertPath: cert, KeyPath: key}}, echoMux(t))
	serial := func() string {
		nc, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		return nc.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	newCert, newKey := a.issue("next")
	replace := func(from, to string) {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, append(b, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(newCert, cert)
	time.Sleep(1100 * time.Millisecond) // files are looked at once a second
	if got := serial(); got != first {
		t.Error("a certificate without its key was taken")
	}
	replace(newKey, key)
	eventually(t, "the new pair", func() bool { return serial() != first })
}

// A handshake that never ends and bytes that are none hold nothing up.
func TestTLSBadHandshakes(t *testing.T) {
	s := start(t, server.Config{HandshakeTimeout: 200 * time.Millisecond, TLS: server.TLSConfig{TestMode: true}}, echoMux(t))
	never := dial(t, s)
	if _, err := never.Write([]byte{0x16, 3, 1}); err != nil {
		t.Fatal(err)
	}
	garbage := dial(t, s)
	if _, err := garbage.Write([]byte("\x16garbage that is no handshake at all")); err != nil {
		t.Fatal(err)
	}
	garbage.closed()
	never.closed()
	eventually(t, "counted", func() bool {
		st := s.Stats()
		return st.Closed[server.ReasonTLSHandshake]+st.Closed[server.ReasonHandshake] == 2 && st.Connections[server.StateAccepted] == 0
	})
	c := newClient(t, client.Config{TLS: clientTLS(t, client.TLSOptions{TestMode: true})})
	if _, err := callBody(t, c, s.Addr().String(), "x"); err != nil {
		t.Error(err)
	}
}

// TLS behind a proxy that says who the client is.
func TestTLSAfterProxyHeader(t *testing.T) {
	forBoth(t, func(t *testing.T, cfg server.Config) {
		m := server.NewMux()
		m.HandleInline(1, func(r *server.Request) { r.Reply(0, r.Conn().Remote().String()) })
		cfg.TLS = server.TLSConfig{TestMode: true}
		s := start(t, cfg, m)
		for _, together := range []bool{false, true} {
			raw := dial(t, s)
			head := []byte("PROXY TCP4 192.0.2.7 192.0.2.2 5555 443\r\n")
			var nc net.Conn = raw
			if together {
				nc = &prepend{Conn: raw, first: head}
			} else if _, err := raw.Write(head); err != nil {
				t.Fatal(err)
			}
			p := &peer{tls.Client(nc, &tls.Config{InsecureSkipVerify: true}), t}
			p.send(request(1, 1, ""))
			if resp := p.receive(); resp.Remark != "192.0.2.7:5555" {
				t.Errorf("remote %q", resp.Remark)
			}
		}
	})
}

// prepend writes first together with the first write.
type prepend struct {
	net.Conn
	first []byte
}

func (p *prepend) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(append(p.first, b...))
	n = max(n-len(p.first), 0)
	p.first = nil
	return n, err
}

func TestTLSCiphersAndProtocols(t *testing.T) {
	const suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	s := start(t, server.Config{TLS: server.TLSConfig{TestMode: true, Protocols: []string{"TLSv1.2"}, Ciphers: []string{suite}}}, echoMux(t))
	nc, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if st := nc.ConnectionState(); st.Version != tls.VersionTLS12 || tls.CipherSuiteName(st.CipherSuite) != suite {
		t.Errorf("version %x, cipher suite %s", st.Version, tls.CipherSuiteName(st.CipherSuite))
	}
	for _, bad := range []server.TLSConfig{{TestMode: true, Protocols: []string{"SSLv3"}}, {TestMode: true, Ciphers: []string{"NONE"}}} {
		if _, err := server.New(server.Config{Addr: ":0", TLS: bad}, server.NewMux()); err == nil {
			t.Errorf("accepted %+v", bad)
		}
	}
}
