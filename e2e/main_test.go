package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What the tests stand on; set by TestMain.
var (
	mqxBinary string // built from the tree
	classPath string // of the Java parts, with the driver
	workDir   string // goes at the end
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if spec := os.Getenv(goConsumerEnv); spec != "" {
		return goConsumerMain(spec) // this process is one consumer of a test
	}
	if workDir = os.Getenv(goOffsetsEnv); workDir == "" {
		return again()
	}
	quietGoClient()
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer killChildren()
	return m.Run()
}

// goOffsetsEnv is where the Go client keeps the offsets of broadcast groups; it
// looks at it before main begins, so that the tests run in a second process.
const goOffsetsEnv = "rocketmq.client.localOffsetStoreDir"

func again() int {
	dir, err := os.MkdirTemp("", "mqx-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), goOffsetsEnv+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			_ = cmd.Process.Signal(sig)
		}
	}()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// prepare builds mqx and the Java driver, and fetches the jars where they are
// not yet there.
func prepare() error {
	mqxBinary = filepath.Join(workDir, "mqx")
	if _, err := output("go", "build", "-C", "..", "-o", mqxBinary, "."); err != nil {
		return err
	}
	jars, err := output("java/fetch")
	if err != nil {
		return err
	}
	classes := filepath.Join(workDir, "classes")
	libraries := filepath.Join(strings.TrimSpace(jars), "*")
	sources, err := filepath.Glob("java/*.java")
	if err != nil {
		return err
	}
	if _, err := output("javac", append([]string{"-nowarn", "-d", classes, "-cp", libraries}, sources...)...); err != nil {
		return err
	}
	classPath = classes + ":" + libraries
	// What mqx keeps for a person, the journal of changes and contexts, is none of the one who runs these tests.
	home := filepath.Join(workDir, "home")
	return errors.Join(os.Setenv("XDG_STATE_HOME", home), os.Setenv("XDG_CONFIG_HOME", home))
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("cannot run %s %s: %w\n%s", name, strings.Join(args, " "), err, errOut.String())
	}
	return out.String(), nil
}

// outputEven is output with what was printed before a failure.
func outputEven(name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}
