package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"aclEnable=false":                            "aclEnable=false",
		"secretKey=abc123":                           "secretKey=[redacted]",
		"tls.server.keyPassword = hunter2\nnext=1":   "tls.server.keyPassword = [redacted]\nnext=1",
		`{"accessKey":"AK","secretKey":"a \"b\" c"}`: "",
		`{"username":"u","password":"p w"}`:          `{"username":"u","password":[redacted]}`,
		"password: 'it is'":                          "password: [redacted]",
		`innerClientAuthenticationCredentials={\"accessKey\":\"AK\",\"secretKey\":\"SK\"}`: "",
		"a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b":         "a [redacted] b",
		"a -----BEGIN PRIVATE KEY-----\nMIIE":                                              "a [redacted]",
	} {
		got := string(Redact([]byte(text)))
		if want != "" && got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		for _, secret := range []string{"abc123", "hunter2", "a \\\"b", "p w", "it is", "SK", "MIIE", `"AK`} {
			if strings.Contains(text, secret) && strings.Contains(got, secret) {
				t.Errorf("%q became %q: %q is still there", text, got, secret)
			}
		}
	}
}

func TestProperties(t *testing.T) {
	got := string(Properties(map[string]string{
		"brokerName": "a", "initAuthenticationUser": `{"username":"root","password":"12"}`, "authenticationEnabled": "true", "tls.server.keyPassword": "x y", "empty.password": "",
	}))
	want := "authenticationEnabled=true\nbrokerName=a\nempty.password=\ninitAuthenticationUser=[redacted]\ntls.server.keyPassword=[redacted]\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBundle(t *testing.T) {
	var b bytes.Buffer
	w := New(&b, time.UnixMilli(0))
	long := strings.Repeat("0123456789abcde\n", MaxFile/16+100)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(w.Text("a.txt", []byte("secretKey=abc\n")))
	check(w.Text("long.txt", []byte(long)))
	check(w.Tail("tail.txt", strings.NewReader(long), int64(len(long))))
	check(w.Blob("blob", []byte{0, 1}))
	if err := w.Blob("big", make([]byte, MaxFile+1)); err == nil {
		t.Error("a blob without bound")
	}
	check(w.Close())
	es := w.Entries()
	if len(es) != 4 || es[1].Cut == 0 || es[2].Cut != es[1].Cut || es[1].Bytes > MaxFile {
		t.Errorf("entries: %+v", es)
	}
	gz, err := gzip.NewReader(&b)
	check(err)
	r := tar.NewReader(gz)
	h, err := r.Next()
	check(err)
	text, err := io.ReadAll(r)
	check(err)
	if h.Name != "a.txt" || string(text) != "secretKey=[redacted]\n" {
		t.Errorf("%s: %q", h.Name, text)
	}
}

func TestBundleIsBounded(t *testing.T) {
	w := New(io.Discard, time.UnixMilli(0))
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = w.Blob("blob", make([]byte, MaxFile))
	}
	if !errors.Is(err, ErrFull) || n != MaxTotal/MaxFile+1 {
		t.Errorf("after %d files: %v", n, err)
	}
}
