package doctor

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"mqx/internal/sorted"
	"mqx/internal/words"
)

// Profiles are what one server told of itself (net/http/pprof). Err is why it did not.
type Profiles struct {
	Addr             string
	Goroutines       []Stack
	HeapBefore, Heap *Heap
	Err              error
}

// Stack is one stack and how many goroutines stand in it.
type Stack struct {
	Count  int
	Frames []string // the innermost first
}

// Heap is what is in use.
type Heap struct {
	InUse int64 // bytes, of all sites
	Sites []Site
}

// Site is one place that allocates.
type Site struct {
	Bytes  int64
	Frames []string // the innermost first
}

var profileRules = []Rule{
	{
		ID: "goroutines-many", Scope: ScopeHost, Severity: Warning, judge: judgeGoroutines,
		Looks:   "More than 10,000 goroutines of a server of mqx stand in one place (--pprof).",
		Meaning: "requests or connections pile up there",
		Mend:    "mqx debug bundle -O bundle.tar.gz --pprof <NAME>",
	},
}

// maxGoroutines in one place.
const maxGoroutines = 10_000

func judgeGoroutines(j *judgement) {
	if len(j.Host.Profiles) == 0 {
		j.unknown("no server's profiles are named (--pprof ADDR)")
	}
	for i := range j.Host.Profiles {
		p := &j.Host.Profiles[i]
		if p.Err != nil {
			j.unknown("%s: %v", p.Addr, p.Err)
			continue
		}
		if len(p.Goroutines) > 0 && p.Goroutines[0].Count > maxGoroutines {
			j.find(p.Addr, "%s", topStacks(p.Goroutines))
		}
		j.ok("%s: %s", p.Addr, topStacks(p.Goroutines))
	}
}

// ParseGoroutines reads /debug/pprof/goroutine?debug=1: most first.
func ParseGoroutines(text string) ([]Stack, error) {
	if !strings.HasPrefix(text, "goroutine profile:") {
		return nil, fmt.Errorf("cannot read goroutine profile: it begins with %q", firstLine(text))
	}
	var out []Stack
	blocks(text, func(head string, frames []string) {
		count, _, ok := strings.Cut(head, " @")
		if n, err := strconv.Atoi(count); ok && err == nil {
			out = append(out, Stack{n, frames})
		}
	})
	sorted.Stably(out, func(a, b Stack) int { return cmp.Compare(b.Count, a.Count) })
	return out, nil
}

// ParseHeap reads /debug/pprof/heap?debug=1. The samples are scaled to what they stand
// for: an allocation of s bytes is sampled with the probability 1 - exp(-s/rate).
func ParseHeap(text string) (*Heap, error) {
	head := firstLine(text)
	_, rateText, ok := strings.Cut(head, "@ heap/")
	twice, err := strconv.ParseFloat(strings.TrimSpace(rateText), 64)
	if !strings.HasPrefix(head, "heap profile:") || !ok || err != nil || twice <= 0 {
		return nil, fmt.Errorf("cannot read heap profile: it begins with %q", head)
	}
	rate := twice / 2
	h := &Heap{}
	blocks(text, func(head string, frames []string) {
		var objects, bytes int64
		if _, err := fmt.Sscanf(head, "%d: %d [", &objects, &bytes); err != nil || objects <= 0 || bytes <= 0 || !strings.Contains(head, "] @ 0x") {
			return
		}
		average := float64(bytes) / float64(objects)
		s := Site{Bytes: int64(float64(bytes) / (1 - math.Exp(-average/rate))), Frames: frames}
		h.InUse += s.Bytes
		h.Sites = append(h.Sites, s)
	})
	sorted.Stably(h.Sites, func(a, b Site) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return h, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 80)]
}

// blocks calls f for each entry of a profile in text form: its first line, and the
// functions of its stack.
func blocks(text string, f func(head string, frames []string)) {
	head := ""
	var frames []string
	end := func() {
		if head != "" {
			f(head, frames)
		}
		head, frames = "", nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "#\t"):
			if fields := strings.Split(line, "\t"); len(fields) > 2 {
				name, _, _ := strings.Cut(fields[2], "+0x")
				frames = append(frames, name)
			}
		case strings.HasPrefix(line, "#"), line == "":
		case strings.Contains(line, " @ 0x"):
			end()
			head = line
		}
	}
	end()
}

// where is the first frame that says something: not of the runtime.
func where(frames []string) string {
	for _, f := range frames {
		if !strings.HasPrefix(f, "runtime.") && !strings.HasPrefix(f, "sync.") && !strings.HasPrefix(f, "internal/") && !strings.HasPrefix(f, "syscall.") {
			return f
		}
	}
	if len(frames) > 0 {
		return frames[0]
	}
	return "?"
}

const topMany = 3

func topStacks(list []Stack) string {
	if len(list) == 0 {
		return "no goroutines"
	}
	var parts []string
	for _, s := range list[:min(topMany, len(list))] {
		parts = append(parts, fmt.Sprintf("%s in %s", words.Count(s.Count, "goroutine"), where(s.Frames)))
	}
	return strings.Join(parts, ", ")
}

// topSites are the places that grew the most, or without an earlier heap have the most.
func topSites(before, now *Heap) string {
	by := map[string]int64{}
	for _, s := range now.Sites {
		by[where(s.Frames)] += s.Bytes
	}
	if before != nil {
		for _, s := range before.Sites {
			by[where(s.Frames)] -= s.Bytes
		}
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	sorted.By(names, func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, name := range names[:min(topMany, len(names))] {
		if by[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s in %s", size(by[name]), name))
		}
	}
	return strings.Join(parts, ", ")
}
