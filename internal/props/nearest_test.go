package props

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"fileReservedTime", "flushDiskType", "brokerName", "brokerId"}
	for key, want := range map[string]string{
		"fileReservdTime":  "fileReservedTime",
		"flushdisktype":    "flushDiskType",
		"flushDiskTyp":     "flushDiskType",
		"flushDiskTypes":   "flushDiskType",
		"brokerNmae":       "brokerName",
		"broker":           "brokerId",
		"my.own.key":       "",
		"":                 "",
		"fileReservedDays": "",
	} {
		if got := Nearest(key, slices.Values(known)); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", key, got, want)
		}
	}
	if got := Nearest("ac", slices.Values([]string{"ab", "aa"})); got != "aa" {
		t.Errorf("of several as near: %q", got)
	}
}
