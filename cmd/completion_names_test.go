package cmd

import (
	"slices"
	"testing"
)

// What brokers keep for themselves is offered to who begins to type it, and where nothing else begins so.
func TestSystemNamesAreOfferedWhenAskedFor(t *testing.T) {
	o := offers{names: []string{"ORDERS", "TRADES"}, system: []string{"RMQ_SYS_TRACE_TOPIC", "TBW102", "TRANS_CHECK_MAX_TIME_TOPIC"}}
	for prefix, want := range map[string][]string{
		"": {"ORDERS", "TRADES"}, "T": {"TRADES"}, "TB": {"TBW102"}, "RMQ": {"RMQ_SYS_TRACE_TOPIC"}, "X": nil, "TRA": {"TRADES"}, "TRAN": {"TRANS_CHECK_MAX_TIME_TOPIC"},
	} {
		if got := o.beginning(prefix); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", prefix, got, want)
		}
	}
	if got := (offers{system: []string{"TBW102"}}).beginning(""); len(got) != 0 {
		t.Errorf("nothing but the system's: %v", got)
	}
}
