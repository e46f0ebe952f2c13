package roll

import "time"

// Status of a roll as a whole.
type Status string

// Statuses.
const (
	Planned    Status = "planned"
	Running    Status = "running"
	Asking     Status = "asking" // somebody must restart a broker
	Paused     Status = "paused"
	Aborted    Status = "aborted"
	RolledBack Status = "rolled-back"
	Finished   Status = "finished"
)

// Phase of one broker.
type Phase string

// Phases, in their order.
const (
	Pending    Phase = "pending"
	Draining   Phase = "draining"   // read-only; it waits until nobody writes
	Restarting Phase = "restarting" // the restart has been asked for
	Returning  Phase = "returning"  // it has started anew; it waits until it is healthy
	Opening    Phase = "opening"    // its permission is given back
	Done       Phase = "done"
)

// Broker is one broker of a roll and how far it is.
type Broker struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	ID      int64  `json:"id"`
	Addr    string `json:"addr"`
	// Replicas are the other brokers of the name.
	Replicas int `json:"replicas"`
	// Perm is its brokerPermission, which it gets back; Drain takes the write bit before.
	Perm  int  `json:"perm"`
	Drain bool `json:"drain"`

	Phase Phase     `json:"phase"`
	Since time.Time `json:"since,omitzero"` // when the phase began
	// BootMs is when the broker had started, before its restart.
	BootMs int64 `json:"bootMs,omitempty"`
	// Puts are the messages that it had been given when they were last seen to grow.
	Puts   int64     `json:"puts,omitempty"`
	PutsAt time.Time `json:"putsAt,omitzero"`
	// Healthy is since when it has been healthy in a row.
	Healthy time.Time `json:"healthy,omitzero"`
}

// Settings of a roll.
type Settings struct {
	// RouteInterval is how often clients ask for routes: a drain waits twice as long.
	RouteInterval time.Duration `json:"routeInterval"`
	// Settle is how long nothing must be written, and how long a broker must be healthy.
	Settle time.Duration `json:"settle"`
	// Gate is how long a gate may stay closed.
	Gate time.Duration `json:"gate"`
}

// State is a roll: what is kept in its file.
type State struct {
	Status   Status    `json:"status"`
	Why      string    `json:"why,omitempty"` // of Aborted, Asking and Paused; what it waits for while Running
	Settings Settings  `json:"settings"`
	Brokers  []Broker  `json:"brokers"`
	At       time.Time `json:"at"` // of the last change
}

// Current is the broker whose turn it is, nil when all are done.
func (s *State) Current() *Broker {
	for i := range s.Brokers {
		if s.Brokers[i].Phase != Done {
			return &s.Brokers[i]
		}
	}
	return nil
}

// Observation is what was seen of the broker whose turn it is.
type Observation struct {
	Reachable bool
	Err       string // why not
	BootMs    int64  // 0: not known
	Active    bool
	Behind    int64 // bytes of its log that are not dispatched yet
	Perm      int   // -1: not known
	Puts      int64 // messages that it has been given; -1: not known
	// NotRegistered are the name servers that do not know it.
	NotRegistered []string
	// Replicas of its name as the master tells: how many are in sync with nothing to
	// copy, and how many are connected. -1: not known.
	InSync, Connected int
}

// sick says why a broker is not healthy, "" when it is. replicas is how many its name
// should have in sync.
func (o *Observation) sick(replicas int) string {
	switch {
	case !o.Reachable:
		return "it does not answer: " + o.Err
	case !o.Active:
		return "it says that it is not active"
	case o.Behind > 0:
		return "it has not read its whole log yet"
	case len(o.NotRegistered) > 0:
		return "it is not registered at " + o.NotRegistered[0]
	case replicas > 0 && o.InSync < 0:
		return "how its replicas are is not known"
	case o.InSync >= 0 && o.InSync < replicas:
		return "not all of its replicas are in sync"
	}
	return ""
}
