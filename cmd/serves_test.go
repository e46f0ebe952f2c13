package cmd

import (
	"strings"
	"testing"
)

func TestServes(t *testing.T) {
	for line, want := range map[string]bool{
		"mqx broker start": true, "mqx broker start -c f": true, "mqx -v nameserver start": true, "mqx namesrv start": true, "mqx --context prod broker start": true,
		"/usr/bin/mqbroker -c f": true, "mqnamesrv": true, "mqx dev": true, "mqx -v dev": true, "mqx exporter": true,
		"mqx": false, "mqx admin broker ls": false, "mqx admin broker retire start b": false, "mqx admin topic get dev": false, "mqx start": false, "mqadmin brokerStatus": false,
	} {
		if got := Serves(strings.Fields(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
