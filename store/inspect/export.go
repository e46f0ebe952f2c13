package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"

	"mqx/message"
)

// ExportOptions say what to export.
type ExportOptions struct {
	Match Match
	Scan  ScanOptions // OnBreak is called behind what Export counts; Verify is set
	// Whole writes every record of the log so that an import makes the same log of it again: Match and the range of Scan
	// are not looked at. Else records are written without their positions, and an import gives them new ones.
	Whole bool
	// Redact leaves bodies out and hides the values of properties: what is written cannot be imported.
	Redact bool
}

// The reasons why Export leaves out a record that was chosen.
const (
	SkipUndecodable = "undecodable" // its body cannot be decompressed or is no batch
	SkipPlaceholder = "placeholder" // a repair put it where a record could not be read
)

// ExportCounts are what Export read and wrote. Read = Matched + NotMatched; Matched = Written + the sum of Skipped.
type ExportCounts struct {
	Read       int64 // whole records that were looked at
	Matched    int64
	NotMatched int64
	Written    int64            // records
	Messages   int64            // lines: an inner batch is one record and several messages
	Bytes      int64            // of lines
	Skipped    map[string]int64 // records by reason
	// Unreadable are the ranges of the log that hold no readable record between readable ones or at its end, and
	// UnreadableBytes their length. What they held is not known.
	Unreadable, UnreadableBytes int64
	From, To                    int64 // positions of the log that were looked at
	// Whole says that the lines make the same log again: nothing between the first record and the last is missing.
	Whole bool
}

// Export writes the records that are wanted to w, in the order of the log, a line of JSON each (message.Line;
// docs/format/export.md). It holds a few MiB whatever the size of the store. What was written before an error, or before
// ctx ended, is whole lines when w takes whole writes.
func (d *Dir) Export(ctx context.Context, w io.Writer, o ExportOptions) (ExportCounts, error) {
	e := &exporter{o: o, w: w, match: o.Match, counts: ExportCounts{Skipped: map[string]int64{}, Whole: o.Whole}, fileSize: d.log.FileSize()}
	scan := o.Scan
	scan.Verify = true
	if o.Redact {
		e.o.Whole, e.counts.Whole = false, false
	}
	if o.Whole {
		e.match, scan.From, scan.To = Match{}, 0, 0
		e.counts.Whole = e.o.Whole && sameSizes(d.log.files)
	}
	pick := e.match.Func()
	scan.OnBreak = func(b Break) error {
		if b.Kind != BreakTorn {
			e.counts.Whole = false
		}
		e.counts.Unreadable++
		e.counts.UnreadableBytes += b.To - b.From
		if o.Scan.OnBreak != nil {
			return o.Scan.OnBreak(b)
		}
		return nil
	}
	e.counts.From = max(scan.From, d.log.Min())
	end, err := d.log.Scan(ctx, scan, pick, e.record)
	e.counts.To = end.Offset
	e.counts.Read = end.Records
	e.counts.NotMatched = e.counts.Read - e.counts.Matched
	if err == nil {
		err = e.flush()
	}
	if err != nil {
		e.counts.Whole = false
		return e.counts, fmt.Errorf("cannot export store %q: %w", d.root, err)
	}
	return e.counts, nil
}

// sameSizes reports whether all files but the last have one size and lie where that size puts them.
func sameSizes(files []File) bool {
	for i, f := range files {
		if f.Start%max(files[0].whole(), 1) != 0 || f.whole() != files[0].whole() && i < len(files)-1 {
			return false
		}
	}
	return true
}

// exporter writes lines. It belongs to one goroutine.
type exporter struct {
	o        ExportOptions
	w        io.Writer
	match    Match
	buf      []byte
	counts   ExportCounts
	fileSize int64
}

// exportChunk of lines is written at once.
const exportChunk = 256 << 10

func (e *exporter) record(_ int64, v message.View) error {
	e.counts.Matched++
	lines, why := e.lines(v)
	if why != "" {
		e.counts.Skipped[why]++
		return nil
	}
	for i := range lines {
		l := &lines[i]
		if e.o.Whole && e.counts.Messages == 0 {
			l.LogFileSize = e.fileSize
		}
		if e.o.Redact {
			l.Redact()
		}
		n := len(e.buf)
		var err error
		if e.buf, err = message.AppendLine(e.buf, l); err != nil {
			return err
		}
		e.counts.Messages++
		e.counts.Bytes += int64(len(e.buf) - n)
	}
	e.counts.Written++
	if len(e.buf) >= exportChunk {
		return e.flush()
	}
	return nil
}

// lines are the messages of a record that are wanted; why says that it is left out.
func (e *exporter) lines(v message.View) (lines []message.Line, why string) {
	if e.o.Whole {
		return v.WholeLines(), ""
	}
	if _, ok := v.Property(PropSkipped); ok || string(v.Topic()) == fillerTopic {
		return nil, SkipPlaceholder
	}
	lines, err := v.Lines(true)
	if err != nil {
		return nil, SkipUndecodable
	}
	if len(lines) < 2 {
		return lines, ""
	}
	return slices.DeleteFunc(lines, func(l message.Line) bool {
		return !e.match.Message(&message.Received{Message: message.Message{Properties: l.Properties}, QueueOffset: *l.QueueOffset})
	}), ""
}

func (e *exporter) flush() error {
	if len(e.buf) == 0 {
		return nil
	}
	n, err := e.w.Write(e.buf)
	if err == nil && n < len(e.buf) {
		err = io.ErrShortWrite
	}
	e.buf = e.buf[:0]
	if cap(e.buf) > 4*exportChunk {
		e.buf = nil
	}
	return err
}
