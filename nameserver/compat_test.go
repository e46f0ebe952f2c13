package nameserver

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"mqx/internal/props"
	"mqx/internal/testkit"
	"mqx/remoting"
)

var update = flag.Bool("update", false, "rewrite the generated tables of docs/compatibility.md")

const compatFile = "../docs/compatibility.md"

// apachesCodes are the requests that Apache's name server 5.5 answers.
var apachesCodes = []int32{100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 217, 219, 224, 304, 311, 312, 313, 318, 319, 322, 327, 901, 904}

func TestServicesAreApaches(t *testing.T) {
	var ours []int32
	for _, s := range services {
		if s.code != remoting.ReqProbeBroker { // our own
			ours = append(ours, s.code)
		}
	}
	if slices.Sort(ours); !slices.Equal(ours, apachesCodes) {
		t.Errorf("served: %v, Apache serves %v", ours, apachesCodes)
	}
}

// The tables of docs/compatibility.md are what the code does. Rewrite them with
// go test ./nameserver -run TestCompatibilityPage -update
func TestCompatibilityPage(t *testing.T) {
	testkit.CheckTables(t, compatFile, map[string]string{"name server requests": requestTable(), "name server configuration": configTable()}, *update,
		"go test ./nameserver -run TestCompatibilityPage -update")
}

func requestTable() string {
	var w strings.Builder
	w.WriteString("| code | request | remark |\n|---|---|---|\n")
	for _, s := range services {
		fmt.Fprintf(&w, "| %d | %s | %s |\n", s.code, remoting.RequestName(s.code), s.remark)
	}
	return w.String()
}

func configTable() string {
	rows := map[string]string{}
	def := DefaultConfig()
	def.RocketmqHome = "$ROCKETMQ_HOME"
	for _, f := range props.Fields(&def) {
		if strings.HasPrefix(f.Key, "tls.") {
			continue
		}
		rows[f.Key] = fmt.Sprintf("| %s | %s | in force", f.Key, f.String())
		if slices.Contains(liveKeys, f.Key) {
			rows[f.Key] += ", also while running"
		}
	}
	rows["rocketmqHome"] = "| rocketmqHome | $ROCKETMQ_HOME | no effect: nothing is read from there"
	for key, k := range keysWithoutEffect {
		rows[key] = fmt.Sprintf("| %s | %s | no effect: %s", key, k.value, k.why)
	}
	for _, r := range refusals {
		rows[r.Key] = fmt.Sprintf("| %s | false | **stops the start** when it asks for it: %s", r.Key, r.Why)
	}
	var w strings.Builder
	w.WriteString("| key | default | here |\n|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		w.WriteString(rows[key] + " |\n")
	}
	return w.String()
}
