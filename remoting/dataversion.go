package remoting

import (
	"cmp"
	"time"
)

// DataVersion is the version of a table that one broker owns. Every change
// counts the counter up.
type DataVersion struct {
	Counter      int64 `json:"counter"`
	StateVersion int64 `json:"stateVersion"`
	Timestamp    int64 `json:"timestamp"` // ms since 1970 of the last change
}

// NewDataVersion returns the version of a table without a change.
func NewDataVersion(now time.Time) DataVersion { return DataVersion{Timestamp: now.UnixMilli()} }

// NextVersion returns the version after one more change at now.
func (v DataVersion) NextVersion(now time.Time) DataVersion {
	return v.NextState(v.StateVersion, now)
}

// NextState is NextVersion with a new state version, which in a replicated
// broker is the store's.
func (v DataVersion) NextState(stateVersion int64, now time.Time) DataVersion {
	return DataVersion{Counter: v.Counter + 1, StateVersion: stateVersion, Timestamp: now.UnixMilli()}
}

// Compare orders versions by state version, counter and time.
func (v DataVersion) Compare(o DataVersion) int {
	return cmp.Or(cmp.Compare(v.StateVersion, o.StateVersion), cmp.Compare(v.Counter, o.Counter), cmp.Compare(v.Timestamp, o.Timestamp))
}
