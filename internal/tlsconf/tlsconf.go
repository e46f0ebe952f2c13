// Package tlsconf reads the certificates, keys and restrictions of the tls.*
// configuration keys, for the server and the client side alike.
package tlsconf

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// LoadKeyPair reads a certificate chain and its private key, both PEM. The key
// may be PKCS#1, SEC 1, PKCS#8 or encrypted PKCS#8 (PBES2), for which password
// is used.
func LoadKeyPair(certPath, keyPath, password string) (tls.Certificate, error) {
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot read the certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot read the private key: %w", err)
	}
	if block, _ := pem.Decode(keyPEM); block != nil && block.Type == encryptedKeyType {
		der, err := decryptPKCS8(block.Bytes, password)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("cannot decrypt the private key %q: %w", keyPath, err)
		}
		keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot use certificate %q with key %q: %w", certPath, keyPath, err)
	}
	return pair, nil
}

// LoadPool reads the certificates of authorities from a PEM file.
func LoadPool(path string) (*x509.CertPool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the trusted certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("cannot find a certificate in %q", path)
	}
	return pool, nil
}

// selfSignedFor is how long a self-signed certificate is valid.
const selfSignedFor = 10 * 365 * 24 * time.Hour

// SelfSigned makes a certificate for this host, for tests and trials.
func SelfSigned(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot make a key: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot make a certificate: %w", err)
	}
	t := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host, "localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(selfSignedFor),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &t, &t, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Restrict limits conf to the protocols (TLSv1.2, TLSv1.3; older ones are
// refused) and cipher suites (Java's names, which are those of IANA). Empty
// lists leave Go's defaults. Cipher suites of TLS 1.3 cannot be chosen; they
// are accepted and have no effect.
func Restrict(conf *tls.Config, protocols, ciphers []string) error {
	versions := map[string]uint16{"TLSV1.2": tls.VersionTLS12, "TLSV1.3": tls.VersionTLS13}
	for _, p := range protocols {
		v, ok := versions[strings.ToUpper(strings.TrimSpace(p))]
		if !ok {
			return fmt.Errorf("cannot offer protocol %q: TLSv1.2 and TLSv1.3 are possible", p)
		}
		if conf.MinVersion == 0 || v < conf.MinVersion {
			conf.MinVersion = v
		}
		conf.MaxVersion = max(conf.MaxVersion, v)
	}
	known := tls.CipherSuites()
	for _, name := range ciphers {
		i := slices.IndexFunc(known, func(s *tls.CipherSuite) bool { return s.Name == strings.TrimSpace(name) })
		if i < 0 {
			return fmt.Errorf("cannot offer cipher suite %q", name)
		}
		if !slices.Contains(known[i].SupportedVersions, tls.VersionTLS12) {
			continue
		}
		conf.CipherSuites = append(conf.CipherSuites, known[i].ID)
	}
	return nil
}
