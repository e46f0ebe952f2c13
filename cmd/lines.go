package cmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"mqx/internal/words"
)

// maxLineBytes is the longest line of an input that is read as messages: above
// what any broker takes, so that the error names its size and not the broker's.
const maxLineBytes = 16 << 20

// lineReader reads lines without their ends (\n or \r\n). A last line without
// an end counts.
type lineReader struct {
	r *bufio.Reader
	n int
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line and its number from 1. The line is the caller's to
// keep. io.EOF is the end.
func (l *lineReader) next() (line []byte, number int, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLineBytes {
			return nil, l.n + 1, failf(ExitFailed, "line %d is longer than %s", l.n+1, words.Count(maxLineBytes, "byte")).
				because("no message can be that large")
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return nil, l.n, err
		}
		l.n++
		line = bytes.TrimSuffix(line, []byte("\n"))
		return bytes.TrimSuffix(line, []byte("\r")), l.n, nil
	}
}

// inputLine is a line of the input, or the end of it.
type inputLine struct {
	text   []byte
	number int
	err    error
}

// readLines reads lines in a goroutine of its own, because a read of a terminal
// or a pipe cannot be interrupted: a reader that waits is left behind when ctx
// ends. The last thing it gives is an error, io.EOF at the end.
func readLines(ctx context.Context, in io.Reader) <-chan inputLine {
	out := make(chan inputLine)
	go func() {
		r := newLineReader(in)
		for {
			text, n, err := r.next()
			select {
			case out <- inputLine{text, n, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}
