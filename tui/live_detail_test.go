package tui

import (
	"testing"

	"mqx/internal/render"
	"mqx/remoting"
)

// What brokers say of their replicas is shown as it is, and what they do not know as unknown, never as 0 (N086).
func TestGapOfReplicas(t *testing.T) {
	master := func(m *remoting.HACopies, list ...remoting.HAConnectionRuntimeInfo) remoting.HARuntimeInfo {
		info := remoting.HARuntimeInfo{Master: true, MasterCommitLogMaxOffset: 5000, ConnectionInfo: list}
		if m != nil {
			info.Mqx = &remoting.HAInfo{Master: m}
		}
		return info
	}
	conn := func(ack int64) remoting.HAConnectionRuntimeInfo {
		return remoting.HAConnectionRuntimeInfo{SlaveAckOffset: ack, Diff: 5000 - ack}
	}
	slave := func(phase string) remoting.HARuntimeInfo {
		return remoting.HARuntimeInfo{Mqx: &remoting.HAInfo{Phase: phase}}
	}
	for _, tt := range []struct {
		name string
		id   int64
		info remoting.HARuntimeInfo
		want string
		tone render.Tone
	}{
		{"all there", 0, master(nil, conn(5000)), "0 B", render.Plain},
		{"one of two behind", 0, master(nil, conn(5000), conn(4488)), "512 B", render.Plain},
		{"one that has not reported", 0, master(nil, conn(-1)), "-", render.Plain},
		{"and one that has", 0, master(nil, conn(4488), conn(-1)), "-", render.Plain},
		{"one beyond the master", 0, master(nil, conn(6000)), "-", render.Plain},
		{"none", 0, master(nil), "no replica", render.Plain},
		{"degraded without one", 0, master(&remoting.HACopies{Level: "semi-sync", Degraded: true}), "no replica degraded", render.Bad},
		{"fenced", 0, remoting.HARuntimeInfo{Master: true, Mqx: &remoting.HAInfo{Fenced: "by another"}}, "fenced", render.Bad},
		{"a slave that follows", 1, slave("following"), "-", render.Plain},
		{"one that looks for its master", 1, slave("connecting"), "connecting", render.Warn},
		{"one that has stopped", 1, slave("parted"), "parted", render.Bad},
		{"one of Apache", 1, remoting.HARuntimeInfo{}, "-", render.Plain},
	} {
		b := Broker{ID: tt.id, HAGap: Known(0), HADegraded: true, HALevel: "sync", HAState: "ahead", Replicas: Known(7)} // as it was before
		b.replicates(&tt.info)
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
