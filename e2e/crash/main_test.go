package crash

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"mqx/internal/failpoint"
)

// The variables that choose what a run does; see the package documentation.
const (
	roundsEnv = "MQX_CRASH_ROUNDS"
	seedEnv   = "MQX_CRASH_SEED"
	storeEnv  = "MQX_CRASH_STORE"
	keepEnv   = "MQX_CRASH_KEEP" // where a failed round is kept; default a new directory in the temporary one
)

const (
	defaultRounds = 12
	// roundsOfStore is how many deaths a store lives through.
	roundsOfStore = 12
	// allPointsRounds is how many rounds must have seen a death at every point.
	allPointsRounds = 1000
)

var (
	mqxBinary string // built from the tree, with the points of internal/failpoint
	workDir   string // goes at the end
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mqx-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	workDir = dir
	mqxBinary = filepath.Join(dir, "mqx")
	build := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-tags", "failpoint", "-o", mqxBinary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build mqx: %v\n%s", err, bytes.TrimSpace(out))
		return 1
	}
	defer killChildren()
	return m.Run()
}

// number is the value of a variable of the environment.
func number(t *testing.T, env string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n
}

// TestCrashLoop is the loop. Several stores live at a time (go test -parallel).
func TestCrashLoop(t *testing.T) {
	rounds := int(number(t, roundsEnv, defaultRounds))
	seed := number(t, seedEnv, uint64(time.Now().UnixNano())%1_000_000)
	t.Logf("%d rounds from seed %d", rounds, seed)
	began := time.Now()
	var mu sync.Mutex
	var total totals
	t.Run("stores", func(t *testing.T) {
		for left := rounds; left > 0; left -= roundsOfStore {
			seed := seed + uint64((rounds-left)/roundsOfStore)
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				s := newStore(t, seed)
				s.live(min(left, roundsOfStore))
				mu.Lock()
				defer mu.Unlock()
				total.add(s.total)
			})
		}
	})
	t.Logf("%s: %s", time.Since(began).Round(time.Second), &total)
	t.Logf("died at: %s", total.points())
	for _, p := range failpoint.All() {
		if slices.Contains(failpoint.Timers(), p) {
			continue // TestTimerCrash
		}
		if rounds >= allPointsRounds && total.died[string(p)] == 0 {
			t.Errorf("in %d rounds no broker died at %s", rounds, p)
		}
	}
}
