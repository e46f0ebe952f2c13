package contexts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"mqx/internal/userfile"
)

// Source is where a secret is found: env:NAME, file:PATH, cmd:COMMAND, or
// text:VALUE for one that stands in the open. "" is nowhere.
type Source string

// The kinds of source.
const (
	kindEnv  = "env"
	kindFile = "file"
	kindCmd  = "cmd"
	kindText = "text"
)

// Limits of a secret and of the time that a command may take to give it.
const (
	maxSecret   = 64 << 10
	commandTime = 10 * time.Second
)

// ErrSource says that a text is no Source. It does not hold the text, which may be
// a secret.
var ErrSource = errors.New("it is env:NAME, file:PATH, cmd:COMMAND or text:VALUE")

// ParseSource checks the form of a source.
func ParseSource(text string) (Source, error) {
	kind, rest, ok := strings.Cut(text, ":")
	if !ok || rest == "" {
		return "", ErrSource
	}
	switch kind {
	case kindEnv, kindFile, kindCmd, kindText:
		return Source(text), nil
	}
	return "", ErrSource
}

// String shows where a secret is found, and not the secret.
func (s Source) String() string {
	if strings.HasPrefix(string(s), kindText+":") {
		return kindText + ":(hidden)"
	}
	return string(s)
}

// Read gets the secret, without the line end that a file or command puts behind
// it. env is os.Getenv. A secret that is empty is an error.
func (s Source) Read(ctx context.Context, env func(string) string) (string, error) {
	kind, rest, _ := strings.Cut(string(s), ":")
	var secret []byte
	var err error
	switch kind {
	case kindEnv:
		secret = []byte(env(rest))
	case kindFile:
		secret, err = userfile.Read(expandHome(rest, env), maxSecret)
	case kindCmd:
		secret, err = run(ctx, rest)
	case kindText:
		secret = []byte(rest)
	default:
		err = ErrSource
	}
	if err != nil {
		return "", fmt.Errorf("cannot get the secret from %s: %w", s, err)
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) == 0 {
		return "", fmt.Errorf("cannot get the secret from %s: there is none", s)
	}
	return string(secret), nil
}

func expandHome(path string, env func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home := env("HOME"); home != "" {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// run runs a command in the user's shell and returns what it printed.
func run(ctx context.Context, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	name, args := "sh", []string{"-c", command}
	if runtime.GOOS == "windows" {
		name, args = "cmd", []string{"/C", command}
	}
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = time.Second // a grandchild may hold the pipe
	c.Stdin = os.Stdin        // it may ask for a passphrase
	var out, said limited
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("no answer within %s: %w", commandTime, ctx.Err())
		}
		if text := strings.TrimSpace(said.String()); text != "" {
			return nil, fmt.Errorf("%w: %s", err, text)
		}
		return nil, err
	}
	return out.Bytes(), nil
}

// limited keeps what fits into a secret and drops the rest.
type limited struct{ bytes.Buffer }

// Write never fails: a command is not ended because it says too much.
func (l *limited) Write(b []byte) (int, error) {
	if room := maxSecret - l.Len(); room > 0 {
		_, _ = l.Buffer.Write(b[:min(len(b), room)]) // a buffer in memory
	}
	return len(b), nil
}
