package remoting

// Names of the header fields that carry a signature.
const (
	FieldAccessKey     = "AccessKey"
	FieldSecurityToken = "SecurityToken"
	FieldSignature     = "Signature"
)

// Sign adds the access key and the HMAC-SHA1 signature of c's fields and body
// (docs/wire/headers.md). Nothing of c may change afterwards but the opaque.
func Sign(c *Command, accessKey, secret string) {}

// Signature returns the base64 signature that c must carry.
func Signature(c *Command, secret string) string { return "" }

// SignToken is Sign with a security token.
func SignToken(c *Command, accessKey, secret, token string) {}
