package remoting

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"slices"
)

// Names of the header fields that carry a signature.
const (
	FieldAccessKey     = "AccessKey"
	FieldSecurityToken = "SecurityToken"
	FieldSignature     = "Signature"
)

// fieldUniqueKeyQuery marks a QUERY_MESSAGE for a unique key. Signers up to
// V4_9_3 leave it out of what they sign.
const fieldUniqueKeyQuery = "_UNIQUE_KEY_QUERY"

// Sign adds the access key and the signature to c's fields (docs/wire/headers.md).
// Fields and body must not change afterwards, the opaque may.
func Sign(c *Command, accessKey, secret string) { SignToken(c, accessKey, secret, "") }

// SignToken is Sign with a security token, none when it is empty.
func SignToken(c *Command, accessKey, secret, token string) {
	c.Fields.Set(FieldAccessKey, accessKey)
	if token != "" {
		c.Fields.Set(FieldSecurityToken, token)
	}
	c.Fields.Set(FieldSignature, Signature(c, secret))
}

// Signature returns the signature that c must carry: the base64 of the
// HMAC-SHA1, under secret, over the values of all fields but the signature in
// the order of the field names, and the body.
func Signature(c *Command, secret string) string {
	fields := make(Fields, 0, len(c.Fields))
	for _, f := range c.Fields {
		if f.Value == nil || string(f.Key) == FieldSignature {
			continue
		}
		if c.Version <= V4_9_3 && string(f.Key) == fieldUniqueKeyQuery {
			continue
		}
		fields = append(fields, f)
	}
	slices.SortStableFunc(fields, func(a, b Field) int { return bytes.Compare(a.Key, b.Key) })
	mac := hmac.New(sha1.New, []byte(secret))
	for i, f := range fields {
		if i+1 < len(fields) && bytes.Equal(f.Key, fields[i+1].Key) {
			continue // the last of a name counts
		}
		mac.Write(f.Value)
	}
	mac.Write(c.Body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
