package remoting

// PullMessageView is PullMessageHeader with texts that alias the fields:
// reading it allocates nothing.
type PullMessageView struct {
	ConsumerGroup        []byte
	Topic                []byte
	LiteTopic            []byte
	Subscription         []byte
	ExpressionType       []byte
	ProxyFrowardClientID []byte
	BName                []byte
	NS                   []byte
	QueueOffset          int64
	CommitOffset         int64
	SuspendTimeoutMillis int64 // ms
	SubVersion           int64
	QueueID              int32
	MaxMsgNums           int32
	SysFlag              int32
	MaxMsgBytes          int32
	RequestSource        int32
	Lo                   Opt[bool]
	NSD                  Opt[bool]
	Oneway               Opt[bool]
}

// pullNames are the required fields of a pull request, by bit.
var pullNames = [...]string{
	"consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset", "suspendTimeoutMillis", "subVersion",
}

// Decode fills v from the fields of a pull request.
func (v *PullMessageView) Decode(f Fields) error {
	*v = PullMessageView{}
	var seen uint32
	for i := range f {
		fd := &f[i]
		if fd.Value == nil {
			continue
		}
		bit, err := v.set(fd)
		if err != nil {
			return err
		}
		if bit >= 0 && (len(fd.Value) > 0 || bit < 2) {
			seen |= 1 << bit
		}
	}
	for i, name := range pullNames {
		if seen&(1<<i) == 0 {
			return &MissingFieldError{Field: name}
		}
	}
	return nil
}

// set reads one field and returns its bit when it is a required one.
func (v *PullMessageView) set(fd *Field) (bit int, err error) {
	switch string(fd.Key) {
	case "consumerGroup":
		v.ConsumerGroup = fd.Value
		return 0, nil
	case "topic":
		v.Topic = fd.Value
		return 1, nil
	case "queueId":
		return 2, int32Field(fd, &v.QueueID)
	case "queueOffset":
		return 3, int64Field(fd, &v.QueueOffset)
	case "maxMsgNums":
		return 4, int32Field(fd, &v.MaxMsgNums)
	case "sysFlag":
		return 5, int32Field(fd, &v.SysFlag)
	case "commitOffset":
		return 6, int64Field(fd, &v.CommitOffset)
	case "suspendTimeoutMillis":
		return 7, int64Field(fd, &v.SuspendTimeoutMillis)
	case "subVersion":
		return 8, int64Field(fd, &v.SubVersion)
	case "maxMsgBytes":
		return -1, int32Field(fd, &v.MaxMsgBytes)
	case "requestSource":
		return -1, int32Field(fd, &v.RequestSource)
	case "liteTopic":
		v.LiteTopic = fd.Value
	case "subscription":
		v.Subscription = fd.Value
	case "expressionType":
		v.ExpressionType = fd.Value
	case "proxyFrowardClientId":
		v.ProxyFrowardClientID = fd.Value
	case "bname":
		v.BName = fd.Value
	case "ns":
		v.NS = fd.Value
	case "lo":
		v.Lo = Some(parseBool(fd.Value))
	case "nsd":
		v.NSD = Some(parseBool(fd.Value))
	case "oway":
		v.Oneway = Some(parseBool(fd.Value))
	}
	return -1, nil
}
