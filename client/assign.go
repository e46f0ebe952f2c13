package client

import (
	"slices"

	"mqx/remoting"
)

// assignAveragely is the share of queues of one member, as Java's
// AllocateMessageQueueAveragely computes it: both lists sorted, the first members get
// one queue more where the division leaves a rest. A member that is not in the list
// gets nothing.
func assignAveragely(queues []remoting.MessageQueue, members []string, self string) []remoting.MessageQueue {
	index := slices.Index(members, self)
	if index < 0 || len(queues) == 0 {
		return nil
	}
	n, m := len(queues), len(members)
	rest := n % m
	size := n / m
	switch {
	case n <= m:
		size = 1
	case rest > 0 && index < rest:
		size++
	}
	start := index * size
	if rest == 0 || index >= rest {
		start += rest
	}
	count := min(size, n-start)
	var out []remoting.MessageQueue
	for i := range max(count, 0) {
		out = append(out, queues[(start+i)%n])
	}
	return out
}
