package bundle

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Redacted stands in the place of a secret.
const Redacted = "[redacted]"

// secretWords are in the names of keys whose values are secrets, in small letters; an
// access key names who signs and goes too.
var secretWords = []string{"password", "passwd", "secret", "credential", "accesskey", "access_key", "token", "privatekey", "private_key", "initauthenticationuser"}

var (
	// secretPair is key=value, key: value or "key":"value" inside a line, escaped quotes included.
	secretPair = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(\\?["']?[\w.-]*(?:` + strings.Join(secretWords, "|") + `)[\w.-]*\\?["']?[ \t]*[:=][ \t]*)` +
			`(\\?"(?:[^"\\]|\\[^"]|\\"[^,}\]])*\\?"|'[^']*'|[^\s,;}\]]+)`)
	})
	pemBlock = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`)
	})
)

// isSecret reports whether a text names a secret somewhere.
func isSecret(text []byte) bool {
	small := bytes.ToLower(text)
	return slices.ContainsFunc(secretWords, func(w string) bool { return bytes.Contains(small, []byte(w)) })
}

// IsSecret reports whether a value of a configuration is to be shown to nobody: its key is
// called as secrets are, and it is no switch.
func IsSecret(key, value string) bool {
	return isSecret([]byte(key)) && value != "" && value != "true" && value != "false"
}

// Redact takes the values of secrets out of a text: of keys that are called password,
// secret, token and the like, in properties, JSON and YAML, and private keys.
func Redact(text []byte) []byte {
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		text = pemBlock().ReplaceAll(text, []byte(Redacted))
	}
	if !isSecret(text) {
		return text
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		if isSecret(line) {
			line = secretPair().ReplaceAll(line, []byte("${1}"+Redacted))
		}
		out.Write(line)
	}
	return out.Bytes()
}

// Properties is a configuration as sorted lines of key=value without its secrets: a key
// whose name is that of a secret loses its value as a whole, whatever it holds.
func Properties(values map[string]string) []byte {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(values)) {
		v := []byte(values[k])
		switch {
		case IsSecret(k, values[k]):
			v = []byte(Redacted)
		default:
			v = Redact(v)
		}
		b.WriteString(k + "=")
		b.Write(v)
		b.WriteByte('\n')
	}
	return b.Bytes()
}
