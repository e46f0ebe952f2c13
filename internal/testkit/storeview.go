package testkit

// StoreView is a store directory as Apache's DefaultMessageStore loads it.
type StoreView struct {
	AbortFilePresentBeforeLoad bool           `json:"abortFilePresentBeforeLoad"`
	CheckpointBeforeLoad       Checkpoint     `json:"checkpointBeforeLoad"`
	CheckpointAfterLoad        Checkpoint     `json:"checkpointAfterLoad"`
	Load                       bool           `json:"load"`
	CommitLogMinOffset         int64          `json:"commitLogMinOffset"`
	CommitLogMaxOffset         int64          `json:"commitLogMaxOffset"`
	CommitLogFiles             []LogFile      `json:"commitLogFiles"`
	CommitLogWalkStoppedAt     int64          `json:"commitLogWalkStoppedAt"`
	CommitLogWalkStop          string         `json:"commitLogWalkStop"`
	CommitLogRecords           []LogRecord    `json:"commitLogRecords"` // records and blanks in physical order
	CommitLogRecordCount       int            `json:"commitLogRecordCount"`
	ConsumeQueues              []ConsumeQueue `json:"consumeQueues"`
	Index                      Index          `json:"index"`
	EarliestMessageTime        int64          `json:"earliestMessageTime"` // ms
	Timer                      Timer          `json:"timer"`
}

// Checkpoint holds the fields of the file checkpoint.
type Checkpoint struct {
	PhysicMsgTimestamp   int64 `json:"physicMsgTimestamp"`
	LogicsMsgTimestamp   int64 `json:"logicsMsgTimestamp"`
	IndexMsgTimestamp    int64 `json:"indexMsgTimestamp"`
	MasterFlushedOffset  int64 `json:"masterFlushedOffset"`
	ConfirmPhyOffset     int64 `json:"confirmPhyOffset"`
	LogicsPhysicalOffset int64 `json:"logicsPhysicalOffset"`
}

// LogFile is one file of the commit log.
type LogFile struct {
	File          string `json:"file"`
	Size          int64  `json:"size"`
	WrotePosition int64  `json:"wrotePosition"`
}

// LogRecord is one record of the commit log, or the blank at the end of a file (see IsBlank).
type LogRecord struct {
	Message

	UniqKey      string   `json:"uniqKey"`
	RecordSHA256 string   `json:"recordSha256"` // of the raw bytes
	MagicCode    string   `json:"magicCode"`    // "V1" or "V2"
	Dispatch     Dispatch `json:"dispatch"`

	// Compressed bodies.
	UncompressedBodyLen    *int    `json:"uncompressedBodyLen"`
	UncompressedBodySHA256 string  `json:"uncompressedBodySha256"`
	UncompressedBodyText   *string `json:"uncompressedBodyText"`

	InnerMessages []Message `json:"innerMessages"` // of an inner batch

	EndOfFileBlankAt *int64 `json:"endOfFileBlankAt"` // physical offset; nil for a record
	BlankLen         int64  `json:"blankLen"`
}

// IsBlank reports whether this is the blank at the end of a file and no record.
func (r *LogRecord) IsBlank() bool { return r.EndOfFileBlankAt != nil }

// Offset returns the physical offset of the record or blank.
func (r *LogRecord) Offset() int64 {
	if r.EndOfFileBlankAt != nil {
		return *r.EndOfFileBlankAt
	}
	return r.PhysicalOffset
}

// Len returns the bytes of the record or blank.
func (r *LogRecord) Len() int64 {
	if r.IsBlank() {
		return r.BlankLen
	}
	return int64(r.StoreSize)
}

// Message is a message as Apache's decoder or client gives it.
type Message struct {
	Topic                     string            `json:"topic"`
	QueueID                   int32             `json:"queueId"`
	QueueOffset               int64             `json:"queueOffset"`
	PhysicalOffset            int64             `json:"physicalOffset"`
	StoreSize                 int32             `json:"storeSize"`
	MsgID                     string            `json:"msgId"`       // what a client calls so: the unique key if there is one
	OffsetMsgID               string            `json:"offsetMsgId"` // "" for messages of an inner batch
	Flag                      int32             `json:"flag"`
	SysFlag                   int32             `json:"sysFlag"`
	BornTimestamp             int64             `json:"bornTimestamp"` // ms
	BornHost                  string            `json:"bornHost"`      // address:port, IPv6 in brackets
	StoreTimestamp            int64             `json:"storeTimestamp"`
	StoreHost                 string            `json:"storeHost"`
	ReconsumeTimes            int32             `json:"reconsumeTimes"`
	PreparedTransactionOffset int64             `json:"preparedTransactionOffset"`
	BodyCRC                   uint32            `json:"bodyCRC"`
	Tags                      *string           `json:"tags"`
	Keys                      *string           `json:"keys"`
	Properties                map[string]string `json:"properties"`
	BodyLen                   int               `json:"bodyLen"`
	BodySHA256                string            `json:"bodySha256"`
	BodyText                  *string           `json:"bodyText"` // if at most 200 bytes of UTF-8
}

// Dispatch is what the commit log hands to the builders of consume queues and index.
type Dispatch struct {
	TagsCode                  int64   `json:"tagsCode"`
	Keys                      *string `json:"keys"`
	UniqKey                   *string `json:"uniqKey"`
	ConsumeQueueOffset        int64   `json:"consumeQueueOffset"`
	BatchSize                 int     `json:"batchSize"`
	MsgBaseOffset             int64   `json:"msgBaseOffset"`
	SysFlag                   int32   `json:"sysFlag"`
	PreparedTransactionOffset int64   `json:"preparedTransactionOffset"`
	NextReputFromOffset       int64   `json:"nextReputFromOffset"`
}

// ConsumeQueue is one queue and its units.
type ConsumeQueue struct {
	Topic           string         `json:"topic"`
	QueueID         int32          `json:"queueId"`
	CQType          string         `json:"cqType"` // "SimpleCQ" or "BatchCQ"
	UnitSize        int            `json:"unitSize"`
	MinOffset       int64          `json:"minOffset"`
	MaxOffset       int64          `json:"maxOffset"`
	MinLogicOffset  int64          `json:"minLogicOffset"`
	MaxPhysicOffset int64          `json:"maxPhysicOffset"`
	MessageTotal    int64          `json:"messageTotal"`
	Units           []CQUnit       `json:"units"`
	OffsetByTime    []OffsetByTime `json:"offsetByTime"`
}

// CQUnit is one unit of a consume queue. BatchNum and CompactedOffset are those of a batch queue.
type CQUnit struct {
	QueueOffset     int64  `json:"queueOffset"`
	Pos             int64  `json:"pos"`
	Size            int32  `json:"size"`
	TagsCode        int64  `json:"tagsCode"`
	ValidTagsCode   *int64 `json:"validTagsCode"` // with an ext unit: the code that stands there
	Ext             *CQExt `json:"ext"`
	BatchNum        *int16 `json:"batchNum"`
	CompactedOffset *int32 `json:"compactedOffset"`
}

// CQExt is the unit in the ext file that a consume queue unit points to.
type CQExt struct {
	TagsCode        int64  `json:"tagsCode"`
	MsgStoreTime    int64  `json:"msgStoreTime"`
	Size            int    `json:"size"`
	FilterBitMapHex string `json:"filterBitMapHex"`
}

// OffsetByTime is the answer to a search by store time with both kinds of boundary.
type OffsetByTime struct {
	Timestamp int64 `json:"timestamp"`
	Lower     int64 `json:"lower"`
	Upper     int64 `json:"upper"`
}

// Index is the index of keys: its files and the answers to queries.
type Index struct {
	Files   []IndexFile  `json:"files"`
	Queries []IndexQuery `json:"queries"`
}

// IndexFile is the head of an index file.
type IndexFile struct {
	File           string `json:"file"`
	BeginTimestamp int64  `json:"beginTimestamp"`
	EndTimestamp   int64  `json:"endTimestamp"`
	BeginPhyOffset int64  `json:"beginPhyOffset"`
	EndPhyOffset   int64  `json:"endPhyOffset"`
	HashSlotCount  int32  `json:"hashSlotCount"`
	IndexCount     int32  `json:"indexCount"`
}

// IndexQuery is one query and what Apache found.
type IndexQuery struct {
	Topic                    string  `json:"topic"`
	Key                      string  `json:"key"`
	PhyOffsets               []int64 `json:"phyOffsets"`
	IndexLastUpdateTimestamp int64   `json:"indexLastUpdateTimestamp"`
	IndexLastUpdatePhyOffset int64   `json:"indexLastUpdatePhyoffset"`
}

// Timer is the timer: its check file, and the slots in use with the units of their chains.
type Timer struct {
	LastReadTimeMs         int64       `json:"lastReadTimeMs"`
	LastTimerLogFlushPos   int64       `json:"lastTimerLogFlushPos"`
	LastTimerQueueOffset   int64       `json:"lastTimerQueueOffset"`
	MasterTimerQueueOffset int64       `json:"masterTimerQueueOffset"`
	TimerWheelTTLDay       int         `json:"timerWheelTtlDay"`
	SlotsTotal             int         `json:"slotsTotal"`
	SlotSize               int         `json:"slotSize"`
	TimerWheelFileSize     int64       `json:"timerWheelFileSize"`
	TimerLogUnitSize       int         `json:"timerLogUnitSize"`
	PrecisionMs            int64       `json:"precisionMs"`
	TimerLogLoad           bool        `json:"timerLogLoad"`
	Slots                  []TimerSlot `json:"slots"`
}

// TimerSlot is a slot of the timer wheel.
type TimerSlot struct {
	SlotIndex int         `json:"slotIndex"`
	TimeMs    int64       `json:"timeMs"`
	FirstPos  int64       `json:"firstPos"`
	LastPos   int64       `json:"lastPos"`
	Num       int         `json:"num"`
	Magic     int         `json:"magic"`
	Units     []TimerUnit `json:"units"`
}

// TimerUnit is a unit of the timer log.
type TimerUnit struct {
	TimerLogPos         int64 `json:"timerLogPos"`
	Size                int   `json:"size"`
	PrevPos             int64 `json:"prevPos"`
	Magic               int   `json:"magic"`
	EnqueueTime         int64 `json:"enqueueTime"`
	DelayedTime         int64 `json:"delayedTime"`
	DeliverTime         int64 `json:"deliverTime"`
	OffsetPy            int64 `json:"offsetPy"`
	SizePy              int32 `json:"sizePy"`
	HashCodeOfRealTopic int32 `json:"hashCodeOfRealTopic"`
	Reserved            int64 `json:"reserved"`
}
