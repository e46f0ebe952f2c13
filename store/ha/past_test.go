package ha_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pastFaults are faults filed against Apache RocketMQ in the replication of a group without a controller, and the tests that play
// them: of TestSimulationPast, or of another test in the package at dir.
var pastFaults = []struct{ numbers, dir, file, test, scenario string }{
	{"1155, 3015", "store/ha", "sim_past_test.go", "TestSimulationPast", "1155 3015 bogus report"},
	{"6728", "store/ha", "sim_past_test.go", "TestSimulationPast", "6728 new connection"},
	{"323, 3388", "store/ha", "sim_past_test.go", "TestSimulationPast", "323 3388 ahead"},
	{"3388", "store/ha", "refusal_test.go", "TestMasterBeginsLater", ""},
	{"9002", "store/ha", "sim_past_test.go", "TestSimulationPast", "9002 part of a record"},
	{"10666", "store/ha", "sim_past_test.go", "TestSimulationPast", "10666 cut tail"},
	{"8539, 6344", "store/ha", "sim_past_test.go", "TestSimulationPast", "8539 6344 roles change"},
	{"7689", "store/ha", "sim_past_test.go", "TestSimulationPast", "7689 unconfirmed tail"},
	{"2178", "store/ha", "sim_past_test.go", "TestSimulationPast", "2178 the longest log is not the newest"},
	{"9942", "store/ha", "sim_past_test.go", "TestSimulationPast", "9942 promotions without a write"},
	{"6316", "store/ha", "role_test.go", "TestRoleRules", ""},
	{"6609", "store", "hold_back_test.go", "TestHeldBackOverARestart", ""},
	{"6703", "store", "hold_back_test.go", "TestShownBehindTheEnd", ""},
	{"4771", "broker", "offsets_cut_test.go", "TestOffsetsBehindTheEndAfterACrash", ""},
	{"10668", "broker", "timer_test.go", "TestTimerBadMessages", ""},
	{"1094", "broker", "role_test.go", "TestOffsetsComeBack", ""},
	{"1440", "broker", "past_test.go", "TestOffsetsThereAndBack", ""},
	{"2181", "broker", "replication_test.go", "TestSlave", ""},
	{"8509, 9711", "broker", "past_test.go", "TestLightOffsetsComeAndGo", ""},
	{"7709", "broker", "past_test.go", "TestCommitBelowTheMinimum", ""},
	{"4806", "broker", "past_test.go", "TestPopWithoutCopies", ""},
	{"9804", "broker", "levels_test.go", "TestTablesAreTold", ""},
	{"9984", "broker", "levels_test.go", "TestLostTablesDeleteNothing", ""},
	{"9777, 9984, 9879, 9864, 10030", "broker", "past_test.go", "TestTablesOfASlaveSettle", ""},
	{"9879", "broker", "replication_test.go", "TestSlave", ""},
	{"8006", "broker", "replication_test.go", "TestDelayProgressOfAPromotedSlave", ""},
	{"7923", "broker", "config_test.go", "TestRefusals", ""},
}

// Each past fault of the table has its test, which names it, and docs/reliability.md names both.
func TestPastFaultsHaveTests(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	doc := read("docs/reliability.md")
	rows := 0
	for _, f := range pastFaults {
		text := read(filepath.Join(f.dir, f.file))
		before, _, ok := strings.Cut(text, "\nfunc "+f.test+"(")
		if !ok || f.scenario != "" && !strings.Contains(text, `{"`+f.scenario+`", `) {
			t.Errorf("%s: there is no %s %q in %s/%s", f.numbers, f.test, f.scenario, f.dir, f.file)
		}
		comment := before[strings.LastIndex(before, "\n\n")+1:] + f.scenario
		for n := range strings.SplitSeq(f.numbers, ", ") {
			if !strings.Contains(comment, n) {
				t.Errorf("%s of %s/%s does not say that it plays %s", f.test, f.dir, f.file, n)
			}
		}
		cell := "`" + f.test + "`"
		if f.scenario != "" {
			cell = "`" + f.test + "/" + strings.ReplaceAll(f.scenario, " ", "_") + "`"
		}
		found := false
		for line := range strings.Lines(doc) {
			found = found || strings.HasPrefix(line, "| "+f.numbers+" |") && strings.HasSuffix(line, "| "+f.dir+" "+cell+" |\n")
		}
		if !found {
			t.Errorf("docs/reliability.md lacks | %s | … | %s %s |", f.numbers, f.dir, cell)
		}
	}
	_, table, _ := strings.Cut(doc, "| number | what was lost | test |\n|---|---|---|\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		rows++
	}
	if rows != len(pastFaults) {
		t.Errorf("docs/reliability.md has %d rows of past faults, want %d", rows, len(pastFaults))
	}
}
