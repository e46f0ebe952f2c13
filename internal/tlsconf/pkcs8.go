package tlsconf

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
)

const (
	encryptedKeyType = "ENCRYPTED PRIVATE KEY"
	// maxIterations bounds the work that a key file may ask for.
	maxIterations = 2_000_000
)

// Object identifiers of PBES2 (RFC 8018).
var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}

	oidHMACSHA1   = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 7}
	oidHMACSHA256 = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 9}
	oidHMACSHA384 = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 10}
	oidHMACSHA512 = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 11}

	oidDESEDE3CBC = asn1.ObjectIdentifier{1, 2, 840, 113549, 3, 7}
	oidAES128CBC  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, 2}
	oidAES192CBC  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, 22}
	oidAES256CBC  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, 42}
)

type encryptedKeyInfo struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

type pbes2Params struct {
	KDF    pkix.AlgorithmIdentifier
	Cipher pkix.AlgorithmIdentifier
}

type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	KeyLength  int                      `asn1:"optional"`
	PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
}

var errPassword = errors.New("the password is wrong or the file is damaged")

// decryptPKCS8 returns the PKCS#8 key that der (EncryptedPrivateKeyInfo of
// RFC 5958 under PBES2) holds.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var info encryptedKeyInfo
	if rest, err := asn1.Unmarshal(der, &info); err != nil || len(rest) > 0 {
		return nil, errors.New("not an encrypted PKCS#8 key")
	}
	if !info.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, fmt.Errorf("encryption %v is not PBES2; write it again with `openssl pkcs8 -topk8 -v2 aes-256-cbc`", info.Algorithm.Algorithm)
	}
	var params pbes2Params
	if _, err := asn1.Unmarshal(info.Algorithm.Parameters.FullBytes, &params); err != nil {
		return nil, fmt.Errorf("parameters of PBES2: %w", err)
	}
	newBlock, keyLen, err := blockCipher(params.Cipher.Algorithm)
	if err != nil {
		return nil, err
	}
	key, err := deriveKey(params.KDF, password, keyLen)
	if err != nil {
		return nil, err
	}
	var iv []byte
	if _, err := asn1.Unmarshal(params.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, fmt.Errorf("initialisation vector: %w", err)
	}
	block, err := newBlock(key)
	if err != nil {
		return nil, err
	}
	n := block.BlockSize()
	if len(iv) != n || len(info.Data) == 0 || len(info.Data)%n != 0 {
		return nil, errPassword
	}
	plain := make([]byte, len(info.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, info.Data)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > n {
		return nil, errPassword
	}
	for _, b := range plain[len(plain)-pad:] {
		if int(b) != pad {
			return nil, errPassword
		}
	}
	return plain[:len(plain)-pad], nil
}

func blockCipher(oid asn1.ObjectIdentifier) (func([]byte) (cipher.Block, error), int, error) {
	switch {
	case oid.Equal(oidAES128CBC):
		return aes.NewCipher, 16, nil
	case oid.Equal(oidAES192CBC):
		return aes.NewCipher, 24, nil
	case oid.Equal(oidAES256CBC):
		return aes.NewCipher, 32, nil
	case oid.Equal(oidDESEDE3CBC):
		return des.NewTripleDESCipher, 24, nil
	}
	return nil, 0, fmt.Errorf("cipher %v is not known", oid)
}

func deriveKey(kdf pkix.AlgorithmIdentifier, password string, keyLen int) ([]byte, error) {
	if !kdf.Algorithm.Equal(oidPBKDF2) {
		return nil, fmt.Errorf("key derivation %v is not PBKDF2", kdf.Algorithm)
	}
	var p pbkdf2Params
	if _, err := asn1.Unmarshal(kdf.Parameters.FullBytes, &p); err != nil {
		return nil, fmt.Errorf("parameters of PBKDF2: %w", err)
	}
	if p.Iterations <= 0 || p.Iterations > maxIterations {
		return nil, fmt.Errorf("%d iterations of PBKDF2", p.Iterations)
	}
	var h func() hash.Hash
	switch prf := p.PRF.Algorithm; {
	case len(prf) == 0 || prf.Equal(oidHMACSHA1):
		h = sha1.New
	case prf.Equal(oidHMACSHA256):
		h = sha256.New
	case prf.Equal(oidHMACSHA384):
		h = sha512.New384
	case prf.Equal(oidHMACSHA512):
		h = sha512.New
	default:
		return nil, fmt.Errorf("hash %v of PBKDF2 is not known", prf)
	}
	return pbkdf2.Key(h, password, p.Salt, p.Iterations, keyLen)
}
