package tlsconf

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// recheck is how often files are looked at, at most, when handshakes happen.
const recheck = time.Second

// KeyPair is a certificate with its key that is read again when both files
// have changed. Safe to share. It looks when a handshake asks; nothing runs in
// between.
type KeyPair struct {
	certPath, keyPath, password string
	onError                     func(error)

	mu struct {
		sync.Mutex
		pair      *tls.Certificate
		cert, key stamp
		looked    time.Time
	}
}

// stamp tells one content of a file from the next.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(path string) stamp {
	fi, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{fi.ModTime(), fi.Size()}
}

// NewKeyPair reads the files. onError is told why a changed pair cannot be
// used; the former stays in use.
func NewKeyPair(certPath, keyPath, password string, onError func(error)) (*KeyPair, error) {
	k := &KeyPair{certPath: certPath, keyPath: keyPath, password: password, onError: onError}
	k.mu.cert, k.mu.key = stampOf(certPath), stampOf(keyPath)
	pair, err := LoadKeyPair(certPath, keyPath, password)
	if err != nil {
		return nil, err
	}
	k.mu.pair = &pair
	return k, nil
}

// Get returns the pair in use.
func (k *KeyPair) Get() *tls.Certificate {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Sub(k.mu.looked) < recheck {
		return k.mu.pair
	}
	k.mu.looked = now
	cert, key := stampOf(k.certPath), stampOf(k.keyPath)
	if cert == k.mu.cert || key == k.mu.key || cert == (stamp{}) || key == (stamp{}) {
		return k.mu.pair
	}
	pair, err := LoadKeyPair(k.certPath, k.keyPath, k.password)
	if err != nil {
		// Perhaps half written: the next look tries again.
		k.onError(err)
		return k.mu.pair
	}
	k.mu.pair, k.mu.cert, k.mu.key = &pair, cert, key
	return k.mu.pair
}
