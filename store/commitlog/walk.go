package commitlog

import "mqx/message"

// WalkOptions say how far and how carefully to walk.
type WalkOptions struct {
	// To ends the walk; records that start before it are delivered. 0 means End of a recovered log, and everything
	// there is on disk otherwise. WalkAll means everything on disk in any case.
	To int64
	// VerifyBody checks the checksum of each body.
	VerifyBody bool
	// VerifyProp checks the checksum property of records that carry one, instead of the body's.
	VerifyProp bool
	// Hot reads through the mapping, without copying: for bytes that were appended a moment ago.
	Hot bool
	// OnFinding is told about what is skipped. An error ends the walk with it.
	OnFinding func(Finding) error
}

// WalkAll as WalkOptions.To: walk all that is on disk.
const WalkAll = int64(1<<63 - 1)

// Finding is a range that holds no readable record and that was stepped over, because records follow.
type Finding struct {
	Kind     FindingKind
	From, To int64  // To is where the next record, or the next file, starts
	Path     string // file of From (Hole: the missing file)
	Err      error  // Rot: what is wrong at From
}

// FindingKind names a kind of finding.
type FindingKind int

const (
	// Rot is a broken record, or several, with a whole record behind.
	Rot FindingKind = iota + 1
	// Hole is a missing file.
	Hole
)

// EndReason says why a walk ended.
type EndReason int

const (
	// EndLimit: WalkOptions.To was reached.
	EndLimit EndReason = iota + 1
	// EndOfData: nothing but zeros follow.
	EndOfData
	// EndTorn: bytes follow that are no whole record, and no whole record follows them. Err says what is wrong.
	EndTorn
	// EndStopped: the callback returned ErrStop (or an error, which Walk returns).
	EndStopped
)

// WalkEnd tells where and why a walk ended.
type WalkEnd struct {
	Offset    int64 // where the next record would start
	Reason    EndReason
	Last      int64  // start of the last record delivered, -1 when there was none
	LastStore int64  // its store time in milliseconds
	Records   int64  // delivered
	Err       error  // EndTorn: what is wrong at Offset
	Path      string // file of Offset
}

// Walk delivers the records from the record (or file start) at from on, over blanks, file ends, holes and rot. The
// record is only valid during the call. When f returns an error, the record counts as not delivered: ErrStop ends the
// walk without an error, others are returned.
func (l *Log) Walk(from int64, o WalkOptions, f func(off int64, rec message.View) error) (WalkEnd, error) {
	panic("not written yet")
}
