package ha

import "fmt"

// Span is what there is of a log: [Min, End), in files of FileSize bytes.
type Span struct{ Min, End, FileSize int64 }

// RefusedError says why a slave is not served from where it asked to be.
type RefusedError struct {
	Report int64 // how far the slave's log goes
	Span   Span  // of the master
}

func (e *RefusedError) Error() string {
	if e.Report > e.Span.End {
		return fmt.Sprintf("the slave's log goes to %d, that of the master to %d: they have parted", e.Report, e.Span.End)
	}
	return fmt.Sprintf("the slave's log ends at %d, and the master has nothing before %d any more", e.Report, e.Span.Min)
}

// start decides where the stream to a slave begins that has reported how far its log goes. A blank slave gets the log from
// its first file; with lastFile, as Apache does, from its last.
func (s Span) start(report int64, lastFile bool) (int64, error) {
	switch {
	case report == 0 && lastFile:
		return max(s.Min, s.End-s.End%s.FileSize), nil
	case report == 0:
		return s.Min, nil
	case report < s.Min, report > s.End:
		return 0, &RefusedError{Report: report, Span: s}
	}
	return report, nil
}
