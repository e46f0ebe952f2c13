package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEncryptedKeys(t *testing.T) {
	cert := "testdata/cert.pem"
	plain, err := LoadKeyPair(cert, "testdata/plain.key", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aes256", "aes128sha1", "des3"} {
		path := filepath.Join("testdata", name+".key")
		pair, err := LoadKeyPair(cert, path, "secret")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		a, _ := x509.MarshalPKCS8PrivateKey(plain.PrivateKey)
		b, _ := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		if string(a) != string(b) {
			t.Errorf("%s: another key came out", name)
		}
		for _, wrong := range []string{"", "Secret"} {
			if _, err := LoadKeyPair(cert, path, wrong); err == nil {
				t.Errorf("%s: password %q was taken", name, wrong)
			}
		}
	}
	if _, err := LoadKeyPair(cert, "testdata/pbes1.key", "secret"); err == nil || !strings.Contains(err.Error(), "PBES2") {
		t.Errorf("an old encryption: %v", err)
	}
}

func TestLoadKeyPairErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range [][2]string{
		{"testdata/cert.pem", "testdata/none"},
		{"testdata/none", "testdata/plain.key"},
		{"testdata/cert.pem", empty},
		{empty, "testdata/plain.key"},
		{"testdata/plain.key", "testdata/cert.pem"},
	} {
		if _, err := LoadKeyPair(tc[0], tc[1], ""); err == nil {
			t.Errorf("%v was taken", tc)
		}
	}
	if _, err := LoadPool(empty); err == nil {
		t.Error("an empty file was taken as authorities")
	}
	if _, err := LoadPool("testdata/cert.pem"); err != nil {
		t.Error(err)
	}
}

func TestSelfSigned(t *testing.T) {
	now := time.Now()
	pair, err := SelfSigned(now)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		t.Errorf("valid from %v to %v", cert.NotBefore, cert.NotAfter)
	}
	if err := cert.VerifyHostname("localhost"); err != nil {
		t.Error(err)
	}
}

func TestRestrict(t *testing.T) {
	var conf tls.Config
	if err := Restrict(&conf, []string{"TLSv1.3", "TLSv1.2"}, []string{"TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}); err != nil {
		t.Fatal(err)
	}
	if conf.MinVersion != tls.VersionTLS12 || conf.MaxVersion != tls.VersionTLS13 || len(conf.CipherSuites) != 1 {
		t.Errorf("versions %x to %x, %d suites", conf.MinVersion, conf.MaxVersion, len(conf.CipherSuites))
	}
	for _, bad := range [][2][]string{{{"TLSv1"}, nil}, {nil, {"TLS_RSA_WITH_RC4_128_SHA"}}} {
		if err := Restrict(&tls.Config{}, bad[0], bad[1]); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestKeyPairKeepsTheFormer(t *testing.T) {
	dir := t.TempDir()
	copyTo := func(from, name string, extra string) string {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, append(b, extra...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := copyTo("testdata/cert.pem", "cert", ""), copyTo("testdata/plain.key", "key", "")
	failed := 0
	k, err := NewKeyPair(cert, key, "", func(error) { failed++ })
	if err != nil {
		t.Fatal(err)
	}
	first := k.Get()
	again := func() *tls.Certificate {
		k.mu.Lock()
		k.mu.looked = time.Time{}
		k.mu.Unlock()
		return k.Get()
	}
	copyTo("testdata/cert.pem", "cert", "# changed")
	if again() != first || failed != 0 {
		t.Error("one changed file was enough")
	}
	copyTo("testdata/README.md", "key", "")
	if again() != first || failed != 1 {
		t.Errorf("a broken pair was taken, %d failures told", failed)
	}
	copyTo("testdata/plain.key", "key", "\n")
	if again() == first {
		t.Error("the new pair was not taken")
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if again() == nil {
		t.Error("a removed file took the pair away")
	}
}

func FuzzDecryptPKCS8(f *testing.F) {
	for _, name := range []string{"aes256", "des3", "pbes1"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".key"))
		if err != nil {
			f.Fatal(err)
		}
		block, _ := pem.Decode(b)
		f.Add(block.Bytes)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		if len(der) > 1000 {
			return
		}
		if out, err := decryptPKCS8(der, "wrong"); err == nil && len(out) > len(der) {
			t.Error("more came out than went in")
		}
	})
}
