package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func splitAddrs(s string) []string { return strings.Split(s, ";") }

// numbered makes n messages whose bodies differ.
func numbered(prefix string, n int) []outgoing {
	out := make([]outgoing, n)
	for i := range out {
		out[i] = outgoing{Body: fmt.Sprintf("%s-%04d 消息 ✓", prefix, i)}
	}
	return out
}

func bodies(ms []incoming) []string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = string(m.Body)
	}
	return out
}

// missing compares what was sent with what came, as sets of bodies, and says
// what is missing, unexpected or there twice; "" when all is well.
func missing(want []outgoing, got []incoming) string {
	count := map[string]int{}
	for _, m := range got {
		count[string(m.Body)]++
	}
	var lost, twice []string
	for _, w := range want {
		switch n := count[w.Body]; {
		case n == 0:
			lost = append(lost, short(w.Body))
		case n > 1:
			twice = append(twice, short(w.Body))
		}
		delete(count, w.Body)
	}
	unexpected := slices.Sorted(maps.Keys(count))
	if len(lost)+len(twice)+len(unexpected) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d came; missing %v, twice %v, unexpected %d", len(want)-len(lost), len(want), head(lost), head(twice), len(unexpected))
}

// lost says what did not come at all; a message that came twice is fine where
// at least once is all that is promised.
func lost(want []outgoing, got []incoming) string {
	have := map[string]bool{}
	for _, m := range got {
		have[string(m.Body)] = true
	}
	var gone []string
	for _, w := range want {
		if !have[w.Body] {
			gone = append(gone, short(w.Body))
		}
	}
	if len(gone) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d missing: %v", len(gone), len(want), head(gone))
}

func head(list []string) []string {
	if len(list) > 5 {
		return append(slices.Clone(list[:5]), fmt.Sprintf("… %d more", len(list)-5))
	}
	return list
}

func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// byQueue sorts messages by queue and offset.
func byQueue(ms []incoming) []incoming {
	out := slices.Clone(ms)
	slices.SortFunc(out, func(a, b incoming) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.QueueID, b.QueueID), cmp.Compare(a.QueueOffset, b.QueueOffset))
	})
	return out
}

// checkOffsets: each queue's offsets run from 0 without a gap.
func checkOffsets(t *testing.T, ms []incoming) {
	t.Helper()
	next := map[int]int64{}
	for _, m := range byQueue(ms) {
		if m.QueueOffset != next[m.QueueID] {
			t.Fatalf("queue %d: offset %d after %d", m.QueueID, m.QueueOffset, next[m.QueueID]-1)
		}
		next[m.QueueID]++
	}
}
