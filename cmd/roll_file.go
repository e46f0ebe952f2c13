package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"mqx/admin"
	"mqx/admin/roll"
	"mqx/internal/userfile"
	"mqx/internal/vfs"
)

// rollFile is a roll as its file holds it.
type rollFile struct {
	path        string
	APIVersion  string      `json:"apiVersion"`
	Kind        string      `json:"kind"`
	MadeAt      time.Time   `json:"madeAt"`
	Context     string      `json:"context,omitempty"`
	NameServers []string    `json:"namesrv"`
	RestartCmd  string      `json:"restartCmd,omitempty"`
	Roll        *roll.State `json:"roll"`
}

const (
	rollKind     = "Roll"
	maxRollBytes = 4 << 20
)

// readRollFile reads the state of a roll.
func readRollFile(path string) (*rollFile, error) {
	data, err := userfile.Read(path, maxRollBytes)
	if err != nil {
		return nil, inputFailure("roll", path, "mqx admin cluster roll plan --plan-out "+path, err)
	}
	f := &rollFile{path: path}
	if err := decodeOnly(data, f); err != nil {
		return nil, usagef("cannot read roll %q: %w", path, err).because("it is no file that roll plan has written").try("mqx admin cluster roll plan --plan-out FILE")
	}
	if f.APIVersion != planVersion || f.Kind != rollKind || f.Roll == nil {
		return nil, usagef("cannot use roll %q: it is %q of %q, this mqx knows %q of %q", path, f.Kind, f.APIVersion, rollKind, planVersion).because("another command or version wrote it").try("mqx admin cluster roll plan --plan-out FILE")
	}
	return f, nil
}

// save writes the state durably.
func (f *rollFile) save() error {
	f.APIVersion, f.Kind = planVersion, rollKind
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write roll: %w", err)
	}
	return userfile.Write(f.path, append(text, '\n'))
}

// lock keeps a second run of the same roll out, on this machine.
func (f *rollFile) lock() (unlock func(), err error) {
	l, err := vfs.OS.Lock(f.path + ".lock")
	if errors.Is(err, vfs.ErrLocked) {
		return nil, failf(ExitCheckFailed, "cannot run the roll of %q: somebody runs it already", f.path).because("another process holds "+f.path+".lock").try("mqx admin cluster roll status %s --watch", f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock roll %q: %w", f.path, err)
	}
	return func() { _ = l.Close() }, nil
}

// owner names runs from this file on this machine, which the lock of the file keeps apart: one that goes on after a kill has the
// lease of the one before. A copy of the file is another owner.
func (f *rollFile) owner() string {
	host, err := os.Hostname()
	if err != nil {
		return "" // each run is one of its own
	}
	path, err := filepath.Abs(f.path)
	if err != nil {
		return ""
	}
	return "mqx-roll@" + host + ":" + path
}

func (f *rollFile) ownedFailure(owned *admin.RollOwnedError) error {
	return failf(ExitCheckFailed, "cannot run the roll of %q: %w", f.path, owned).
		because("one at a time restarts the brokers of a cluster; a lease ends a minute after its owner did").
		try("in a minute, when the other one has ended, with the newest state of the roll")
}

// A pause is asked for by a file beside that of the roll, so that it never meets a write of the state.

func (f *rollFile) pause() error { return userfile.Write(f.path+".pause", []byte("pause\n")) }

func (f *rollFile) paused() bool {
	_, err := os.Stat(f.path + ".pause")
	return err == nil
}

func (f *rollFile) unpause() error {
	if err := os.Remove(f.path + ".pause"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot take the pause of roll %q away: %w", f.path, err)
	}
	return nil
}

// plainWord is what may be filled into a command that a shell runs: names and addresses
// come from the name servers, and anybody can register there.
var plainWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9._:-]*$`)
})

var rollPlace = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{[a-z]+\}`)
})

// restartCommand fills the places of a command in.
func restartCommand(text string, b roll.Broker) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	_, port, err := net.SplitHostPort(b.Addr)
	if err != nil {
		return "", fmt.Errorf("cannot read address %q: %w", b.Addr, err)
	}
	values := map[string]string{
		"{host}": admin.RollHost(b.Addr), "{port}": port, "{addr}": b.Addr, "{broker}": b.Name, "{id}": strconv.FormatInt(b.ID, 10), "{cluster}": b.Cluster,
	}
	out := rollPlace().ReplaceAllStringFunc(text, func(place string) string {
		v, ok := values[place]
		switch {
		case !ok:
			err = usagef("cannot use --restart-cmd: %s is no place that is filled in", place).because("the places are {host}, {port}, {addr}, {broker}, {id}, {cluster}").try("--restart-cmd 'ssh {host} systemctl restart mqx-broker'")
		case !plainWord().MatchString(v):
			err = fmt.Errorf("cannot fill %q into a command for %s: it has characters that a shell understands", v, place)
		}
		return v
	})
	if err != nil {
		return "", err
	}
	return out, nil
}

// restartBroker runs the restart command of a broker, or asks for the restart.
func (a *app) restartBroker(ctx context.Context, f *rollFile, b roll.Broker) error {
	command, err := restartCommand(f.RestartCmd, b)
	if err != nil {
		return err
	}
	if command == "" {
		if !a.InTTY || !a.ErrTTY {
			return admin.ErrRollAsk
		}
		fmt.Fprintf(a.Err, "Restart broker %s (id %d, %s) now, then press Enter: ", b.Name, b.ID, b.Addr)
		if _, err := bufio.NewReader(a.In).ReadString('\n'); err != nil {
			return admin.ErrRollAsk
		}
		return nil
	}
	a.note("running: %s", command)
	ctx, cancel := context.WithTimeout(ctx, f.Roll.Settings.Gate)
	defer cancel()
	run := exec.CommandContext(ctx, "sh", "-c", command)
	run.Stdout, run.Stderr = a.Err, a.Err // stdout carries records
	run.WaitDelay = time.Second
	if err := run.Run(); err != nil {
		if why := ctx.Err(); why != nil { // it was killed for that
			err = fmt.Errorf("%w: %w", why, err)
		}
		return fmt.Errorf("cannot restart broker %q with %q: %w", b.Name, command, err)
	}
	return nil
}
