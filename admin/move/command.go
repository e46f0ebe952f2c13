package move

import "fmt"

// CommandKind is what a Command does.
type CommandKind string

// The commands. Each sets something to a value if it still is what it was, does nothing
// when it already is so, and is read back.
const (
	CreateGroup   CommandKind = "create group"   // copies a group's configuration from Source to Broker unless it has one
	SetTopic      CommandKind = "set topic"      // Topic on Broker from Was to To; Was nil: it must not exist
	SetOffset     CommandKind = "set offset"     // Group's offset in Queue of Topic on Broker to 0 unless it has one
	SetMode       CommandKind = "set mode"       // how Group gets Topic on Broker, unless the broker was told
	SetOrder      CommandKind = "set order"      // the order configuration of Topic at every name server
	SetBrokerPerm CommandKind = "set permission" // brokerPermission of Broker
	DeleteTopic   CommandKind = "delete topic"   // Topic on Broker, if its queues still end at Max
	CleanRoute    CommandKind = "clean route"    // Topic on Broker out of the routes of every name server
)

// Command is one change.
type Command struct {
	Kind   CommandKind `json:"kind"`
	Broker string      `json:"broker,omitempty"`
	Source string      `json:"source,omitempty"`
	Topic  string      `json:"topic,omitempty"`
	Group  string      `json:"group,omitempty"`
	Queue  int32       `json:"queue,omitempty"`
	Was    *Topic      `json:"was,omitempty"`
	To     *Topic      `json:"to,omitempty"`
	Max    []int64     `json:"max,omitempty"`

	Mode     *Mode   `json:"mode,omitempty"`
	OrderWas *string `json:"orderWas,omitempty"`
	OrderTo  *string `json:"orderTo,omitempty"` // nil: the entry is deleted
	PermWas  int32   `json:"permWas,omitempty"`
	PermTo   int32   `json:"permTo,omitempty"`
}

// String says in one line what the command does.
func (c *Command) String() string {
	switch c.Kind {
	case CreateGroup:
		return fmt.Sprintf("create group %s on %s as on %s", c.Group, c.Broker, c.Source)
	case SetTopic:
		return fmt.Sprintf("set topic %s on %s: %s -> %s", c.Topic, c.Broker, c.Was, c.To)
	case SetOffset:
		return fmt.Sprintf("set offset of group %s in queue %d of topic %s on %s to 0 unless it has one", c.Group, c.Queue, c.Topic, c.Broker)
	case SetMode:
		return fmt.Sprintf("set mode of group %s for topic %s on %s: %s, share %d", c.Group, c.Topic, c.Broker, c.Mode.Name, c.Mode.Share)
	case SetOrder:
		return fmt.Sprintf("set order configuration of topic %s at every name server: %s -> %s", c.Topic, text(c.OrderWas), text(c.OrderTo))
	case SetBrokerPerm:
		return fmt.Sprintf("set brokerPermission of %s: %d -> %d", c.Broker, c.PermWas, c.PermTo)
	case DeleteTopic:
		if c.Max == nil {
			return fmt.Sprintf("delete topic %s on %s if nothing was written since", c.Topic, c.Broker)
		}
		return fmt.Sprintf("delete topic %s on %s if its queues still end at %v", c.Topic, c.Broker, c.Max)
	case CleanRoute:
		return fmt.Sprintf("take topic %s on %s out of the routes of every name server", c.Topic, c.Broker)
	}
	return string(c.Kind)
}

func text(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// sameText compares two texts that may be absent.
func sameText(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
