package remoting

// Requests between servers of mqx, and of its tools to them. Whoever does not know them answers REQUEST_CODE_NOT_SUPPORTED, and is got on with as with
// a broker of Apache's (docs/format/ha.md).
const (
	// ReqReplicaHello: a slave tells its master who has opened a connection to its replication port.
	ReqReplicaHello int32 = 7_170_001
	// RespNotMaster answers it where the broker is a slave itself.
	RespNotMaster int32 = 7_170_001
	// ReqTablesChanged: a master tells a slave what of its tables has changed.
	ReqTablesChanged int32 = 7_170_002
	// ReqProbeBroker: a tool asks a name server to connect to a broker that is registered with it.
	ReqProbeBroker int32 = 7_170_003
	// ReqMqxHA asks a broker about its part in its group, or to change it. The field "act" says what; bodies are JSON.
	ReqMqxHA int32 = 7_210_001
)

// ProbeBrokerHeader is the request header of ReqProbeBroker.
type ProbeBrokerHeader struct {
	BrokerAddr string `rmq:"brokerAddr,required"` // as it is registered
}

// ProbeBrokerResponseHeader is the response header of ReqProbeBroker.
type ProbeBrokerResponseHeader struct {
	Error string `rmq:"error,omitempty"` // why the broker was not reached; "" when it took the connection
}

// ReplicaHelloHeader is the request header of ReqReplicaHello.
type ReplicaHelloHeader struct {
	ClusterName string `rmq:"clusterName,required"`
	BrokerName  string `rmq:"brokerName,required"`
	BrokerID    int64  `rmq:"brokerId,required"`
	BrokerAddr  string `rmq:"brokerAddr,omitempty"` // where it is told of changed tables; "" for nowhere
	HAAddr      string `rmq:"haAddr,required"`      // its end of the connection
}

// ReplicaHelloResponseHeader is the response header of ReqReplicaHello.
type ReplicaHelloResponseHeader struct {
	Flushed bool `rmq:"flushed,required"` // reports are to tell what is durable
}

// TablesChangedBody is the body of ReqTablesChanged. The slave answers when it has what has changed.
type TablesChangedBody struct {
	Parts   []string        `json:"parts"` // to be asked for: topics, groups, offsets, delays, modes
	Offsets []ChangedOffset `json:"offsets"`
}

// ChangedOffset is one offset that was committed or reset.
type ChangedOffset struct {
	Topic  string `json:"topic"`
	Group  string `json:"group"`
	Queue  int32  `json:"queue"`
	Offset int64  `json:"offset"`
	Reset  bool   `json:"reset"` // somebody has set it: it may go back
	// At is when, in milliseconds of the epoch by the broker's clock: when it was set, of one that is not a reset until when nobody has
	// set it; 0 where that is not known.
	At int64 `json:"at,omitempty"`
}
