package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestChaos is the short form: a round of a few seconds, always the same plan: a slave dies under load, then the master, which
// waits for a copy, and comes back as a slave, through links that are cut. The waits of a round are of 90 s each: what is slow
// is no finding.
func TestChaos(t *testing.T) {
	mqx := filepath.Join(t.TempDir(), "mqx")
	if out, err := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-o", mqx, ".").CombinedOutput(); err != nil {
		t.Fatalf("cannot build mqx: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var out bytes.Buffer
	err := chaos(ctx, &options{
		mqx: mqx, seed: 32, rounds: 1, steps: 2, out: &out, verbose: true,
		levels: regexp.MustCompile("^(semi-)?sync|quorum"), only: regexp.MustCompile("promote-killed|cut-links|kill-slave$|stop-slave$"),
	})
	t.Log(out.String())
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		t.Error(err)
	}
}

// The same seed gives the same plan, and consecutive ones all levels and kinds of steps.
func TestPlan(t *testing.T) {
	o := &options{steps: 4, levels: regexp.MustCompile(""), only: regexp.MustCompile("")}
	kinds, names := map[kind]bool{}, map[string]bool{}
	for seed := range uint64(100) {
		p, again := newPlan(seed, o), newPlan(seed, o)
		if p.String() != again.String() || len(p.steps) != o.steps {
			t.Errorf("seed %d: %s, then %s", seed, &p, &again)
		}
		names[p.level.name] = true
		for _, s := range p.steps {
			kinds[s.kind] = true
		}
	}
	o.each, o.steps = true, 3
	each := map[kind]int{}
	for seed := range uint64(12) {
		for _, s := range newPlan(seed, o).steps {
			each[s.kind]++
		}
	}
	for _, w := range weights {
		if each[w.kind] != 2 {
			t.Errorf("12 rounds of 3 steps in turn come %d times to %s, want 2", each[w.kind], w.kind)
		}
	}
	if len(kinds) != len(weights) || len(names) != len(levels) {
		t.Errorf("100 seeds come to %d of %d kinds and %d of %d levels", len(kinds), len(weights), len(names), len(levels))
	}
}
