package cmd

import (
	"strings"
	"testing"

	"mqx/admin"
)

// The values of secrets of a server are in no output, those of other keys are.
func TestConfigHidesSecrets(t *testing.T) {
	a := admin.ServerConfig{Role: admin.RoleBroker, Broker: admin.Broker{Name: "a"}, Values: map[string]string{
		"innerClientAuthenticationCredentials": `{"accessKey":"u","secretKey":"pw-a"}`, "initAuthenticationUser": "pw-a", "tls.server.keyPassword": "pw-a",
		"fileReservedTime": "48", "aclSecretRequired": "true", "metricsToken": "",
	}}
	b := a
	b.Name, b.Values = "b", map[string]string{"initAuthenticationUser": "pw-b", "fileReservedTime": "72"}
	text := ""
	for _, rows := range [][][]any{configRows(&a, nil), diffRows([]admin.ServerConfig{a, b}, true)} {
		for _, row := range rows {
			for _, v := range row {
				if s, ok := v.(string); ok {
					text += s + " "
				}
			}
		}
	}
	if strings.Contains(text, "pw-") {
		t.Errorf("a secret is printed: %s", text)
	}
	for _, want := range []string{"initAuthenticationUser " + hidden, "fileReservedTime 48", "aclSecretRequired true", "metricsToken  "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}
