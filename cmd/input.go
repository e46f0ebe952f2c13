package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"mqx/internal/userfile"
	"mqx/internal/words"
)

// inputFailure is why a file that the command line names cannot be read, with one exit
// code in every command: 7 where it is not there, 4 where this user may not read it, 2 for
// a directory. what says what it holds, try where one comes from.
func inputFailure(what, path, try string, err error) *Failure {
	cause := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		cause = e.Err // the path is named already
	}
	f := failf(exitOfFile(err), "cannot read %s %q: %w", what, path, cause)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Why = "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		f.Why, try = "this user may not read it", "ls -l "+path
	case errors.Is(err, syscall.EISDIR):
		f.Code, f.Why = ExitUsage, "a file is wanted"
	case errors.Is(err, userfile.ErrTooLarge):
		f.Code, f.Why = ExitUsage, "no "+what+" is that long"
	default:
		f.Why = "it is there, and reading it failed"
	}
	f.Try = try
	return f
}

// openInput opens a file that the command line names, and refuses a directory.
func openInput(what, path, try string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, inputFailure(what, path, try, err)
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		_ = f.Close() // nothing was written
		return nil, inputFailure(what, path, try, syscall.EISDIR)
	}
	return f, nil
}

// readInput reads a file that a person gave; "-" is stdin. what names it, and try says
// where one comes from.
func (a *app) readInput(path, what, try string, limit int64) ([]byte, error) {
	if path == "-" {
		data, err := io.ReadAll(io.LimitReader(a.In, limit+1))
		if err != nil {
			return nil, fmt.Errorf("cannot read stdin: %w", err)
		}
		if int64(len(data)) > limit {
			return nil, usagef("cannot read stdin: it is longer than %s", words.Count(limit, "byte"))
		}
		return data, nil
	}
	data, err := userfile.Read(path, limit)
	if err != nil {
		return nil, inputFailure(what, path, try, err)
	}
	return data, nil
}

// input opens the FILE argument; none and "-" are stdin.
func (a *app) input(args []string) (io.Reader, func(), error) {
	if len(args) == 0 || args[0] == "-" {
		return a.In, func() {}, nil
	}
	f, err := openInput("file", args[0], "- for stdin, or the name of a file that is there")
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}
