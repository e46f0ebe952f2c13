package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mqx/internal/testkit"
)

// A confirmed plan is all that is done with something lost: what only came to light when log files were in their places
// again is shown, and asked for anew.
func TestRepairDoesNoPlanThatNobodySaw(t *testing.T) {
	dir := testkit.GoldenStore(t, "clean_reference")
	log := filepath.Join(dir, "commitlog")
	one, two, last := filepath.Join(log, "00000000000000000000"), filepath.Join(log, "00000000000000131072"), filepath.Join(log, "00000000000000262144")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(one, one+".x"))
	must(os.Rename(two, one))
	must(os.Rename(one+".x", two))
	b, err := os.ReadFile(last)
	must(err)
	b[271999-262144] ^= 0xFF // in the body of a record
	must(os.WriteFile(last, b, 0o644))
	repair := func(args ...string) (Exit, string, string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := Execute(t.Context(), append([]string{"mqx", "store"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		return code, out.String(), errs.String()
	}
	name := filepath.Base(dir)
	code, out, errs := repair("repair", dir, "--confirm", name)
	if code != ExitUsage || !strings.Contains(out, "rename-log") || strings.Contains(out, "fill-log") || !strings.Contains(errs, "fill-log") || !strings.Contains(errs, "the plan that was confirmed is done") {
		t.Fatalf("the first repair: %d\n%s%s", code, out, errs)
	}
	after, err := os.ReadFile(last)
	must(err)
	if !bytes.Equal(after, b) {
		t.Error("the second plan has begun")
	}
	if code, out, errs := repair("repair", dir, "--confirm", name); code != 0 || !strings.Contains(out, "fill-log") {
		t.Fatalf("the second repair: %d\n%s%s", code, out, errs)
	}
	if code, out, errs := repair("verify", dir); code != 0 {
		t.Errorf("verify: %d\n%s%s", code, out, errs)
	}
}
