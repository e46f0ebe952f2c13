package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mqx/admin"
	"mqx/internal/render"
)

// What brokers say of their replicas is shown as it is, and what they do not know as unknown, never as 0 (N086).
func TestGapOfReplicas(t *testing.T) {
	const end = 5000
	// answer is that of a master with slaves that have reported these positions.
	answer := func(more string, acks ...int64) string {
		var list []string
		for _, ack := range acks {
			list = append(list, fmt.Sprintf(`{"slaveAckOffset":%d,"diff":%d}`, ack, end-ack))
		}
		return fmt.Sprintf(`{"master":true,"haConnectionInfo":[%s]%s}`, strings.Join(list, ","), more)
	}
	slave := func(phase string) string { return `{"master":false,"mqx":{"phase":"` + phase + `"}}` }
	for _, tt := range []struct {
		name string
		id   int64
		info string
		want string
		tone render.Tone
	}{
		{"all there", 0, answer("", end), "0 B", render.Plain},
		{"one of two behind", 0, answer("", end, end-512), "512 B", render.Plain},
		{"one that has not reported", 0, answer("", -1), "-", render.Plain},
		{"and one that has", 0, answer("", end-512, -1), "-", render.Plain},
		{"the other way round", 0, answer("", -1, end-512), "-", render.Plain},
		{"one beyond the master", 0, answer("", end+1000), "-", render.Plain},
		{"none", 0, answer(""), "no replica", render.Plain},
		{"degraded without one", 0, answer(`,"mqx":{"master":{"level":"semi-sync","degraded":true}}`), "no replica degraded", render.Bad},
		{"fenced", 0, answer(`,"mqx":{"fenced":"by another"}`), "fenced", render.Bad},
		{"a slave that follows", 1, slave("following"), "-", render.Plain},
		{"one that looks for its master", 1, slave("connecting"), "connecting", render.Warn},
		{"one that has stopped", 1, slave("parted"), "parted", render.Bad},
		{"one of Apache", 1, `{"master":false}`, "-", render.Plain},
	} {
		var st admin.HAStatus
		if err := json.Unmarshal([]byte(tt.info), &st.Info); err != nil {
			t.Fatal(err)
		}
		b := Broker{ID: tt.id, HAGap: Known(0), HADegraded: true, HALevel: "sync", HAState: "ahead", Replicas: Known(7)} // as it was before
		b.replicates(&st)
		if c := gapCell(&b); c.text != tt.want || c.tone != tt.tone {
			t.Errorf("%s: %q %v, want %q %v", tt.name, c.text, c.tone, tt.want, tt.tone)
		}
		if b.ID != 0 && (b.Replicas.OK || b.HAGap.OK) {
			t.Errorf("%s: %+v", tt.name, b)
		}
	}
	// A broker that was not asked, or has not answered.
	if c := gapCell(&Broker{}); c.text != "-" {
		t.Errorf("without an answer: %q", c.text)
	}
}
