package remoting

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"testing"
)

func hmacOf(secret, content string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(content))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestSignatureCoversFieldsByNameAndBody(t *testing.T) {
	c := &Command{Version: Version, Body: []byte("BODY")}
	c.Fields.Set("topic", "T")
	c.Fields.Set("a", "A")
	c.Fields.Set("Signature", "old")
	c.Fields.Set("_UNIQUE_KEY_QUERY", "true")
	c.Fields = append(c.Fields, Field{Key: []byte("null")})
	Sign(c, "ak", "sk")
	// The byte order of the names: AccessKey, _UNIQUE_KEY_QUERY, a, topic.
	if got, want := c.Fields.String(FieldSignature), hmacOf("sk", "aktrueATBODY"); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
	if c.Fields.String(FieldAccessKey) != "ak" {
		t.Error("no access key")
	}
	c.Version = V4_9_3
	if got, want := Signature(c, "sk"), hmacOf("sk", "akATBODY"); got != want {
		t.Errorf("up to V4_9_3: %s, want %s", got, want)
	}
	SignToken(c, "ak", "sk", "tok")
	if got, want := Signature(c, "sk"), hmacOf("sk", "aktokATBODY"); got != want {
		t.Errorf("with a token: %s, want %s", got, want)
	}
}

// The values were computed with another implementation of HMAC-SHA1.
func TestSignatureKnownValue(t *testing.T) {
	c := NewRequest(ReqGetRouteInfoByTopic, &GetRouteInfoHeader{Topic: "TopicTest"})
	Sign(c, "rocketmq2", "12345678")
	if got := c.Fields.String(FieldSignature); got != "GeeGoP9mRvDhoVp4PD5omX0prgE=" {
		t.Errorf("signature %s", got)
	}
}
