package pop

import (
	"fmt"
	"slices"
)

// Names of strategies that assign queues to the clients of a group.
const (
	StrategyAverage = "AVG"
	StrategyCircle  = "AVG_BY_CIRCLE"
)

// Assign gives client its share of n queues among all clients of its group,
// which are sorted: the places of its queues, in order. A client that is not
// among them gets none. Errors: an unknown strategy, no queue, no client.
func Assign(strategy, client string, n int, clients []string) ([]int, error) {
	if client == "" || n == 0 || len(clients) == 0 {
		return nil, fmt.Errorf("cannot assign %d queues to client %q of %d", n, client, len(clients))
	}
	me := slices.Index(clients, client)
	switch strategy {
	case StrategyAverage, StrategyCircle:
	default:
		return nil, fmt.Errorf("the strategy %q is neither %s nor %s", strategy, StrategyAverage, StrategyCircle)
	}
	if me < 0 {
		return nil, nil
	}
	if strategy == StrategyCircle {
		var out []int
		for i := me; i < n; i += len(clients) {
			out = append(out, i)
		}
		return out, nil
	}
	return average(me, n, len(clients)), nil
}

// average gives each client a row of neighbours, the first ones one more when
// it does not come out even.
func average(me, queues, clients int) []int {
	size, more := queues/clients, queues%clients
	first := me*size + min(me, more)
	if me < more {
		size++
	}
	var out []int
	for i := range size {
		out = append(out, first+i)
	}
	return out
}

// AssignPop is Assign for a group that pops. all says that every client takes
// from every queue; else the places are returned: a client's own and those of
// the share clients behind it, or a single one when there are more clients
// than queues.
func AssignPop(strategy, client string, n int, clients []string, share int) (places []int, all bool, err error) {
	if share <= 0 || share >= len(clients)-1 {
		return nil, true, nil
	}
	if len(clients) > n {
		me := slices.Index(clients, client)
		if client == "" || n == 0 {
			return nil, false, fmt.Errorf("cannot assign %d queues to client %q", n, client)
		}
		if me < 0 {
			return nil, false, nil
		}
		return []int{me % n}, false, nil
	}
	places, err = Assign(strategy, client, n, clients)
	if err != nil {
		return nil, false, err
	}
	if me := slices.Index(clients, client); me >= 0 {
		for i := 1; i <= share; i++ {
			more, err := Assign(strategy, clients[(me+i)%len(clients)], n, clients)
			if err != nil {
				return nil, false, err
			}
			places = append(places, more...)
		}
	}
	slices.Sort(places)
	return slices.Compact(places), false, nil
}
