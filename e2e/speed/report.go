package main

import (
	"fmt"
	"slices"
	"strings"
)

// report collects what was measured.
type report struct{ results []*result }

type result struct {
	row
	samples map[string][]sample // by make
}

func (r *report) add(of row) *result {
	res := &result{row: of, samples: map[string][]sample{}}
	r.results = append(r.results, res)
	return res
}

func (r *result) take(kind string, s sample) { r.samples[kind] = append(r.samples[kind], s) }

// median of a metric over the rounds.
func (r *result) median(kind, metric string) (float64, bool) {
	var all []float64
	for _, s := range r.samples[kind] {
		if v, ok := s[metric]; ok {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)/2], true
}

// metrics in the order of columns, with their units.
var metrics = []struct{ name, title, format string }{
	{"perSecond", "/s", "%.0f"},
	{"sentPerSecond", "sent /s", "%.0f"},
	{"p50Ms", "p50 ms", "%.3f"},
	{"p99Ms", "p99 ms", "%.3f"},
	{"p999Ms", "p99.9 ms", "%.3f"},
	{"cpu", "CPU s/100k", "%.3f"},
	{"cpuSecondsPer100k", "CPU s/100k of the load itself", "%.3f"},
	{"startMs", "start to first send ms", "%.0f"},
	{"stopMs", "SIGTERM to exit ms", "%.0f"},
	{"restartMs", "restart ms", "%.0f"},
	{"crashStartMs", "SIGKILL, start to first send ms", "%.0f"},
	{"idleCPU", "idle CPU %", "%.2f"},
	{"anonMiB", "RssAnon MiB", "%.1f"},
	{"rssMiB", "VmRSS MiB", "%.1f"},
	{"nsAnonMiB", "name server RssAnon MiB", "%.1f"},
	{"nsRssMiB", "name server VmRSS MiB", "%.1f"},
	{"created", "topics created /s", "%.0f"},
	{"descriptors", "descriptors", "%.0f"},
	{"diskMiB", "disk MiB", "%.0f"},
	{"p99Ratio", "p99 with/without", "%.2f"},
	{"anonOverIdleMiB", "RssAnon over idle, highest, MiB", "%.1f"},
	{"errors", "errors", "%.0f"},
	{"residentShare", "share in the page cache before", "%.4f"},
	{"readerEnded", "the consumer ended first", "%.0f"},
	{"meanMs", "mean ms", "%.3f"},
	{"lost", "lost", "%.0f"},
	{"twice", "twice", "%.0f"},
	{"p999Last", "p99.9, last third to first", "%.2f"},
	{"anonLast", "RssAnon, last third to first", "%.2f"},
	{"logFiles", "files of the log at the end", "%.0f"},
	{"sizeMiB", "size MiB", "%.1f"},
}

// String is for the progress.
func (s sample) String() string {
	var parts []string
	for _, m := range metrics {
		if v, ok := s[m.name]; ok && m.name != "cpuSecondsPer100k" {
			parts = append(parts, fmt.Sprintf("%s "+m.format, m.title, v))
		}
	}
	return strings.Join(parts, ", ")
}

// markdown is the table: a line for each metric of each row.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("| work | | mqx | Apache | mqx/Apache | to reach | |\n|---|---|---|---|---|---|---|\n")
	for _, res := range r.results {
		title := res.title
		for _, m := range metrics {
			x, okX := res.median(makeMQX, m.name)
			y, okY := res.median(makeApache, m.name)
			if !okX && !okY {
				continue
			}
			cells := []string{title, m.title, cell(m.format, x, okX), cell(m.format, y, okY), "", "", ""}
			if okX && okY && y > 0 {
				cells[4] = fmt.Sprintf("%.2f", x/y)
			}
			if i := slices.IndexFunc(res.floors, func(f floor) bool { return f.metric == m.name }); i >= 0 && okX {
				cells[5], cells[6] = res.floors[i].judge(x, y, okY)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
			title = ""
		}
	}
	return b.String()
}

func cell(format string, v float64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf(format, v)
}

// judge says what is to reach and whether it is.
func (f floor) judge(x, y float64, compared bool) (want, verdict string) {
	switch {
	case f.absolute:
		want = fmt.Sprintf("under %.4g", f.value)
	case f.least:
		want = fmt.Sprintf("at least %.3g", f.value)
	default:
		want = fmt.Sprintf("at most %.3g", f.value)
	}
	v := x
	if !f.absolute {
		if !compared || y == 0 {
			return want, ""
		}
		v = x / y
	}
	if f.least && v >= f.value || !f.least && v <= f.value {
		return want, "reached"
	}
	return want, "**missed**"
}
