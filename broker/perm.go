package broker

// Permission bits of a topic (TopicConfig.perm) and of the broker.
const (
	permInherit = 1
	permWrite   = 2
	permRead    = 4
)

func readable(perm int32) bool  { return perm&permRead != 0 }
func writable(perm int32) bool  { return perm&permWrite != 0 }
func inherited(perm int32) bool { return perm&permInherit != 0 }
