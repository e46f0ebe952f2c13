package doctor

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/doctor.md anew")

const pageHead = `# What mqx doctor looks for

` + "`mqx doctor`" + ` (or ` + "`mqx doctor cluster`" + `) asks name servers, brokers and connected clients; ` + "`mqx doctor host`" + ` looks at the machine it runs on and needs no cluster;
` + "`mqx doctor store DIR`" + ` reads a store directory and needs no broker. None of them changes anything. Rates need two looks, with ` + "`--for`" + ` (10 s) between them: a rule that
needs two says unknown with ` + "`--for 0s`" + `.

Each finding has a severity, the evidence, what it means and the command that mends it. critical: messages are lost, not taken or not delivered, or soon will be. warning: it
will become worse, or does not work as it was meant. note: worth knowing. Where the evidence is missing a rule says **unknown**, with the reason, which is neither right nor wrong.

| exit code | |
|---|---|
| 0 | nothing found; notes and unknown rules may be listed |
| 6 | a critical finding or a warning |
| 3 | nothing found, and some broker did not answer (0 with ` + "`--partial ok`" + `) |
| with ` + "`-o nagios`" + ` | 0 nothing, 1 a warning, 2 something critical, 3 a part did not answer |

` + "`--severity critical`" + ` leaves out what is less; ` + "`--rule ID`" + ` asks only that rule, ` + "`--skip ID`" + ` all others; ` + "`--all`" + ` lists the rules that found nothing, with what they saw. ` + "`<NAME>`" + `
below is what a finding is about.

Groups that broadcast have no lag that a broker knows, and are left out.

This page is made of the table of rules: ` + "`go test ./doctor -run Page -update`" + `.
`

var scopeTitles = []struct {
	scope Scope
	title string
}{
	{ScopeCluster, "mqx doctor cluster"}, {ScopeHost, "mqx doctor host"}, {ScopeStore, "mqx doctor store DIR"},
}

func page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, s := range scopeTitles {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, r := range rules {
			if r.Scope == s.scope {
				fmt.Fprintf(&b, "\n### %s\n\n%s: %s\n\nMeans: %s.\n\nMend: %s.\n", r.ID, r.Severity, r.Looks, r.Meaning, r.Mend)
			}
		}
	}
	return b.String()
}

// docs/doctor.md lists every rule with what it means and what to do.
func TestPageIsFresh(t *testing.T) {
	const name = "../docs/doctor.md"
	if *update {
		if err := os.WriteFile(name, []byte(page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != page() {
		t.Errorf("%s is not what the rules say: go test ./doctor -run Page -update", name)
	}
}

// The table is whole: ids are names, once each, and every rule says what it looks for,
// what that means and what to do.
func TestRulesAreWhole(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, r := range rules {
		if !name.MatchString(r.ID) || seen[r.ID] {
			t.Errorf("id %q", r.ID)
		}
		seen[r.ID] = true
		if r.Looks == "" || !strings.HasSuffix(r.Looks, ".") || r.Meaning == "" || r.Mend == "" || r.judge == nil || !r.Severity.AtLeast(Note) {
			t.Errorf("%s is not whole: %+v", r.ID, r)
		}
	}
}
