package cmd

import (
	"testing"

	"mqx/admin"
	"mqx/remoting"
)

// A connection of a slave that has not reported yet, which masters of Apache list with the position -1, has no position and no
// gap (N086, r#323).
func TestUnreportedSlave(t *testing.T) {
	at := map[string]int{}
	for i, f := range haStatusSchema.Fields {
		at[f.Name] = i
	}
	rows := haRows(&admin.HAStatus{Info: remoting.HARuntimeInfo{Master: true, MasterCommitLogMaxOffset: 5000, ConnectionInfo: []remoting.HAConnectionRuntimeInfo{
		{Addr: "10.0.0.2:1", SlaveAckOffset: -1, Diff: 5001, InSync: true, TransferFromWhere: -1}, {Addr: "10.0.0.3:1", SlaveAckOffset: 5000, InSync: true, TransferFromWhere: 5000},
	}}})
	if len(rows) != 2 {
		t.Fatalf("%d lines", len(rows))
	}
	for name, want := range map[string][2]any{"ackOffset": {nil, int64(5000)}, "behind": {nil, int64(0)}, "ok": {nil, true}, "sendOffset": {nil, int64(5000)}} {
		for i := range rows {
			if got := rows[i][at[name]]; got != want[i] {
				t.Errorf("%s of line %d: %v, want %v", name, i+1, got, want[i])
			}
		}
	}
}
