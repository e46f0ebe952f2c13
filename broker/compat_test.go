package broker

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/remoting"
)

var update = flag.Bool("update", false, "rewrite the generated tables of docs/compatibility.md")

const compatFile = "../docs/compatibility.md"

// The tables of docs/compatibility.md are what the code does. Rewrite them with
// go test ./broker -run TestCompatibilityPage -update
func TestCompatibilityPage(t *testing.T) {
	testkit.CheckTables(t, compatFile, map[string]string{"broker requests": CompatibilityTable(), "broker configuration": configTable()}, *update,
		"go test ./broker -run TestCompatibilityPage -update")
}

// Every request that is served is one that Apache's broker serves too.
func TestServicesAreApaches(t *testing.T) {
	seen := map[int32]bool{}
	for _, s := range services {
		if !slices.Contains(brokerCodes, s.code) {
			t.Errorf("%s is not in the list of Apache's requests", remoting.RequestName(s.code))
		}
		if seen[s.code] {
			t.Errorf("%s is there twice", remoting.RequestName(s.code))
		}
		seen[s.code] = true
		if (s.handle == nil) == (s.batch == nil) {
			t.Errorf("%s needs one handler", remoting.RequestName(s.code))
		}
	}
	for c := range refusedReasons {
		if seen[c] {
			t.Errorf("%s is served and refused", remoting.RequestName(c))
		}
		seen[c] = true
	}
	for _, c := range brokerCodes {
		if !seen[c] {
			t.Errorf("%s is neither served nor refused with a reason", remoting.RequestName(c))
		}
		if _, ok := remoting.Lookup(c); !ok {
			t.Errorf("code %d has no name", c)
		}
	}
}

// inForceBut is what is to be known of keys that are in force.
var inForceBut = map[string]string{
	"haTransferBatchSize": "; a slave of mqx gets frames of 128 KiB at least while it is more than 4 MiB behind, and smaller ones otherwise",
}

// configTable is the table of all keys of broker.conf.
func configTable() string {
	refusing := map[string]string{}
	for _, r := range refusals {
		refusing[r.Key] = r.Why
	}
	var w strings.Builder
	w.WriteString("| key | Apache's default | here |\n|---|---|---|\n")
	for _, k := range slices.SortedFunc(maps.Values(apacheKeys()), func(a, b apacheKey) int { return strings.Compare(a.Key, b.Key) }) {
		here := "in force"
		if k.Reason != "" {
			here = "no effect: " + noEffectReasons[k.Reason]
		}
		if why, ok := refusing[k.Key]; ok {
			here = "**stops the start** when it asks for it: " + why
		}
		if liveKeys[k.Key] {
			here += ", also while running"
		}
		here += inForceBut[k.Key]
		def := k.Default
		if def == "" {
			def = "(none)"
		}
		fmt.Fprintf(&w, "| %s | %s | %s |\n", k.Key, strings.ReplaceAll(def, "|", "\\|"), here)
	}
	return w.String()
}
