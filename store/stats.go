package store

// Stats are the runtime values of a store, for runtime info, metrics and doctor.
type Stats struct {
	PutMessages, PutBytes    int64 // since start
	GetMessages, GetBytes    int64
	GetFound, GetMissed      int64 // Get calls
	PutFailed                int64
	DispatchBehindBytes      int64
	DispatchRetries          int64 // failed attempts to build a queue unit or index entry
	DispatchAlarm            string
	EarliestMessageTimestamp int64 // ms, -1 for none
	PutMaxLockedMs           int64 // longest time the append lock was held
	LogMin, LogEnd           int64
	LogFlushed               int64
	CommitLogFiles           int
	Queues                   int
	OpenFiles                int
	Disk                     []DiskState
	CommitLogDirBytes        int64
}

// DiskState is the state of one volume of the store.
type DiskState struct {
	Name    string // commitlog, consumequeue, index
	Path    string
	Total   int64 // bytes
	Free    int64 // bytes available
	UsedPct int
	Limit   int    // percent at which writes are refused
	State   string // ok, reclaim, force, refuse
	Err     string // when the volume could not be asked
}

// Stats returns the current values.
func (s *Store) Stats() Stats { return Stats{} }

// Writeable reports whether puts are accepted, else why not.
func (s *Store) Writeable() (bool, string) { return true, "" }

// DiskUsage asks the volumes now.
func (s *Store) DiskUsage() []DiskState { return nil }

// InMemory reports whether the record at a queue offset lies within accessMessageInMemoryMaxRatio of memory from the
// end of the log; false when there is none.
func (s *Store) InMemory(topic string, queueID int32, offset int64) bool { return false }

// Units returns up to n units of a queue from an offset on.
func (s *Store) Units(topic string, queueID int32, from int64, n int) ([]Unit, error) { return nil, nil }
