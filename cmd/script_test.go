//go:build linux || darwin

package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mqx/internal/testkit"
)

// The scripts in testdata/script run mqx as a user does: one file a verb. The
// test binary stands in for mqx and for the names it can be called by.
func TestMain(m *testing.M) {
	// Before the zone is looked up for the first time: recorded outputs have times of UTC.
	if _, given := os.LookupEnv("TZ"); !given {
		_ = os.Setenv("TZ", "UTC")
	}
	// What tests run in this process reads and writes nothing of the person who runs them; a script says where its mqx does.
	switch filepath.Base(os.Args[0]) {
	case "mqx", "mqnamesrv", "mqbroker", "mqadmin":
	default:
		home := filepath.Join(os.TempDir(), "mqx-cmd-test")
		for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
			if _, given := os.LookupEnv(name); !given {
				_ = os.Setenv(name, home)
			}
		}
	}
	asMqx := func() {
		ctx, cancel := context.WithCancel(context.Background())
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		go func() {
			NoteSignal(<-signals)
			cancel()
		}()
		code := Execute(ctx, os.Args, StdStreams())
		os.Exit(int(code))
	}
	testscript.Main(m, map[string]func(){"mqx": asMqx, "mqnamesrv": asMqx, "mqbroker": asMqx, "mqadmin": asMqx})
}

// racedScripts are the scripts that run under the race detector as well: those of servers
// and of what reads and writes concurrently. The others start one command after the other,
// hundreds of processes that do one thing each; what is concurrent in them is in packages
// whose own tests run under it.
var racedScripts = []string{
	"bench", "broker", "consume", "dev", "exporter", "metrics", "nameserver", "partial", "produce", "store_follow", "store_live", "top",
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			if name := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-"); raced && !slices.Contains(racedScripts, name) {
				e.T().Skip("it runs without the race detector: see racedScripts")
			}
			e.Setenv("HOME", e.WorkDir)
			for _, unset := range []string{"MQX_NAMESRV", "NAMESRV_ADDR", "MQX_ACCESS_KEY", "NOTIFY_SOCKET", "MQX_CONTEXT", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "VISUAL", "EDITOR", "ROCKETMQ_HOME"} {
				e.Setenv(unset, "")
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"dev":       startDev,
			"server":    startServer,
			"freeport":  setFreePort,
			"retry":     retry,
			"retrygone": retryGone,
			"waitfile":  waitFile,
			"exit":      exitWith,
			"golden":    unpackGolden,
			"lines":     waitLines,
			"agree":     waitAgree,
			"aged":      offsetsAreOf,
			"httpget":   httpGet,
			"plainly":   exitPlainly,

			"threelines": threeLines,
			"every":      everyForm,
			"silent":     silentReads,
		},
	})
}

// unpackGolden unpacks a store that Apache's broker wrote: golden VARIANT DIR makes DIR/store.
func unpackGolden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: golden VARIANT DIR")
	}
	ts.Check(testkit.UnpackStore(args[0], ts.MkAbs(args[1])))
}

// exitWith runs mqx and asks for an exit code: exit CODE ARG... Its output goes
// to the files "out" and "err" of the script's directory.
func exitWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exit CODE ARG...")
	}
	code, out, errOut := runMqx(ts, args[1:])
	ts.Check(os.WriteFile(ts.MkAbs("out"), out, 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("err"), errOut, 0o644))
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s\nstdout: %s\nstderr: %s", code, args[0], out, errOut)
	}
}

// retry runs mqx until it exits with 0 and prints a text: retry TEXT ARG...
func retry(ts *testscript.TestScript, neg bool, args []string) { retryUntil(ts, true, args) }

// retryGone runs mqx until it exits with 0 and no longer prints a text.
func retryGone(ts *testscript.TestScript, neg bool, args []string) { retryUntil(ts, false, args) }

func retryUntil(ts *testscript.TestScript, there bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: retry TEXT ARG...")
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		code, out, errOut := runMqx(ts, args[1:])
		if code == 0 && strings.Contains(string(out), args[0]) == there {
			ts.Check(os.WriteFile(ts.MkAbs("out"), out, 0o644))
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited in vain for %q (there: %v); last: exit code %d, %s %s", args[0], there, code, out, errOut)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// waitFile waits until a file holds a text: waitfile FILE TEXT.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfile FILE TEXT")
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(text), args[1]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never held %q: %s (%v)", args[0], args[1], text, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// waitAgree runs two commands until both print the same lines, in whatever order: agree ARG... -- ARG... What they print is
// the file "out".
func waitAgree(ts *testscript.TestScript, neg bool, args []string) {
	at := slices.Index(args, "--")
	if neg || at < 1 {
		ts.Fatalf("usage: agree ARG... -- ARG...")
	}
	sorted := func(args []string) string {
		code, out, errOut := runMqx(ts, args)
		if code != 0 {
			return fmt.Sprintf("exit code %d of mqx %v: %s", code, args, errOut)
		}
		return strings.Join(slices.Sorted(strings.SplitSeq(string(out), "\n")), "\n")
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		one, two := sorted(args[:at]), sorted(args[at+1:])
		if one == two && one != "" && !strings.HasPrefix(one, "exit code") {
			ts.Check(os.WriteFile(ts.MkAbs("out"), []byte(one), 0o644))
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("they never agreed:\n%s\n---\n%s", one, two)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// exitPlainly is exit, without the right of root to read and write what its mode forbids.
func exitPlainly(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: plainly CODE ARG...")
	}
	cmd := mqxCommand(ts, args[1:])
	if os.Geteuid() == 0 {
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			ts.Fatalf("setpriv is not there: the package util-linux has it")
		}
		const all = "-dac_override,-dac_read_search"
		cmd.Args = append([]string{setpriv, "--bounding-set", all, "--inh-caps", all, cmd.Path}, args[1:]...)
		cmd.Path = setpriv
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		ts.Fatalf("cannot run mqx: %v", err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("out"), stdout.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("err"), stderr.Bytes(), 0o644))
	if code := cmd.ProcessState.ExitCode(); fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s\nstdout: %s\nstderr: %s", code, args[0], stdout.String(), stderr.String())
	}
}

// threeLines asks for an error, a reason and a way out, each one line, in the file that exit wrote: threelines.
func threeLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: threelines")
	}
	text := ts.ReadFile("err")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "error: ") || !strings.HasPrefix(lines[1], "why: ") || !strings.HasPrefix(lines[2], "try: ") {
		ts.Fatalf("want error, why and try, each one line, got:\n%s", text)
	}
}

// waitLines waits until a file has so many lines, and refuses one that stands there twice: lines FILE NUMBER.
func waitLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE NUMBER")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	deadline := time.Now().Add(60 * time.Second)
	for {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		ts.Check(err)
		seen := map[string]bool{}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(text) == 0 {
			lines = nil
		}
		for _, line := range lines[:max(len(lines)-1, 0)] { // the last one may be half written
			if seen[line] {
				ts.Fatalf("%s has twice: %s", args[0], line)
			}
			seen[line] = true
		}
		if len(lines) == want && strings.HasSuffix(string(text), "\n") && !seen[lines[len(lines)-1]] {
			return
		}
		if len(lines) > want || time.Now().After(deadline) {
			ts.Fatalf("%s has %d lines, want %d", args[0], len(lines), want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func runMqx(ts *testscript.TestScript, args []string) (code int, out, errOut []byte) {
	cmd := mqxCommand(ts, args)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		ts.Fatalf("cannot run mqx: %v", err)
	}
	return cmd.ProcessState.ExitCode(), stdout.Bytes(), stderr.Bytes()
}

func mqxCommand(ts *testscript.TestScript, args []string) *exec.Cmd {
	cmd := exec.Command("mqx", args...)
	for _, dir := range strings.Split(ts.Getenv("PATH"), ":") {
		if path := dir + "/mqx"; isFile(path) {
			cmd.Path, cmd.Err = path, nil
			break
		}
	}
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{
		"PATH", "HOME", "MQX_NAMESRV", "NAMESRV_ADDR", "NOTIFY_SOCKET", "TMPDIR", "GOCOVERDIR", "EDITOR", "ROCKETMQ_HOME", "NO_COLOR",
		"MQX_CONTEXT", "MQX_ACCESS_KEY", "MQX_SECRET_KEY", "MQX_ACCESS_KEY_FILE", "MQX_SECRET_KEY_FILE", "MQX_SECRET_KEY_COMMAND",
	} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// startServer runs mqx in the background until the script ends and waits for a
// line of its stderr: server NAME TEXT ARG... Its stderr is the file NAME.
// `server NAME stop` stops it with SIGTERM and asks for exit code 0; `server NAME
// interrupt` sends SIGINT first and asks for 130; `server NAME freeze` makes it hang, `server NAME kill` ends it as a crash does.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: server NAME TEXT ARG... | server NAME stop")
	}
	switch args[1] {
	case "stop":
		stopServer(ts, args[0])
		return
	case "interrupt":
		interruptServer(ts, args[0])
		return
	case "kill":
		s := serverNamed(ts, args[0])
		s.once.Do(func() {
			_ = s.cmd.Process.Kill()
			if err := <-s.done; err == nil {
				ts.Logf("%s ended before it was killed", args[0])
			}
		})
		return
	case "freeze":
		ts.Check(serverNamed(ts, args[0]).cmd.Process.Signal(syscall.SIGSTOP))
		return
	}
	log := ts.MkAbs(args[0])
	file, err := os.Create(log)
	ts.Check(err)
	cmd := mqxCommand(ts, args[2:])
	cmd.Stderr = file
	ts.Check(cmd.Start())
	ts.Check(file.Close())
	s := &runningServer{cmd: cmd, done: make(chan error, 1), log: log}
	go func() { s.done <- cmd.Wait() }()
	servers.Store(ts.MkAbs(args[0]), s)
	ts.Defer(func() { _ = s.stop() })
	deadline := time.Now().Add(30 * time.Second)
	for {
		text, err := os.ReadFile(log)
		ts.Check(err)
		if strings.Contains(string(text), args[1]) {
			return
		}
		select {
		case err := <-s.done:
			s.done <- err
			ts.Fatalf("mqx %v ended: %v\n%s", args[2:], err, text)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			ts.Fatalf("mqx %v never said %q:\n%s", args[2:], args[1], text)
		}
	}
}

// startDev runs mqx dev on free ports and points MQX_NAMESRV at it.
func startDev(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: dev [ARG...]")
	}
	ns, br := freePort(ts), freePort(ts)
	startServer(ts, false, append([]string{"dev.log", "is ready", "dev", "--listen", ns, "--broker-listen", br}, args...))
	ts.Setenv("MQX_NAMESRV", ns)
	ts.Setenv("BROKER", br)
}

// httpGet writes what a URL answers to a file, with a text once that is in it: httpget URL FILE [TEXT].
func httpGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: httpget URL FILE [TEXT]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
		ts.Check(err)
		resp, err := http.DefaultClient.Do(req)
		ts.Check(err)
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		ts.Check(err)
		if resp.StatusCode != http.StatusOK {
			ts.Fatalf("GET %s: %s", args[0], resp.Status)
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
		if len(args) == 2 || strings.Contains(string(text), args[2]) {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("GET %s: waited in vain for %q in\n%s", args[0], args[2], text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// setFreePort sets variables to loopback addresses with free ports: freeport NAME...
func setFreePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: freeport NAME...")
	}
	for _, name := range args {
		ts.Setenv(name, freePort(ts))
	}
}

// freePort finds a port whose second neighbour below is free as well, for the
// second port of a broker. Ports under 32768 are not given to outgoing connections.
func freePort(ts *testscript.TestScript) string {
	for range 1000 {
		port := 12000 + int(time.Now().UnixNano()/1000)%8000
		free := true
		for _, p := range []int{port, port - 2} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				free = false
				continue
			}
			free = l.Close() == nil && free
		}
		if free {
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	ts.Fatalf("no free port")
	return ""
}
