package remoting

// BoundaryType chooses between two offsets of equal distance to a time in
// SearchOffsetHeader: "LOWER" or "UPPER".
type BoundaryType string

// Boundary types.
const (
	BoundaryLower BoundaryType = "LOWER"
	BoundaryUpper BoundaryType = "UPPER"
)

// RPCHeader holds the fields that requests may carry besides their own.
type RPCHeader struct {
	NS     string    `rmq:"ns,omitempty"`      // namespace
	NSD    Opt[bool] `rmq:"nsd"`               // the names are namespaced already
	BName  string    `rmq:"bname|n,omitempty"` // name of the broker that is meant; n in send requests with short names
	Oneway Opt[bool] `rmq:"oway"`
}

// TopicHeader is RPCHeader with the field of requests about a topic.
type TopicHeader struct {
	// Lo is false when the queue id is a physical one, to which the mapping of
	// static topics must not be applied.
	Lo Opt[bool] `rmq:"lo"`
	RPCHeader
}
