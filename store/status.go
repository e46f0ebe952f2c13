package store

import "strconv"

// Status is the outcome of a Put. String gives the name Apache uses.
type Status int8

// Outcomes of a Put, see docs/format/layout.md section "Puts".
const (
	PutOK Status = iota
	FlushDiskTimeout
	FlushSlaveTimeout
	SlaveNotAvailable
	ServiceNotAvailable
	CreateFileFailed
	MessageIllegal
	PropertiesSizeExceeded
	OSPageCacheBusy
	UnknownError
	InSyncReplicasNotEnough
	LMQConsumeQueueNumExceeded
)

var statusNames = [...]string{
	"PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE", "SERVICE_NOT_AVAILABLE",
	"CREATE_MAPPED_FILE_FAILED", "MESSAGE_ILLEGAL", "PROPERTIES_SIZE_EXCEEDED", "OS_PAGE_CACHE_BUSY", "UNKNOWN_ERROR",
	"IN_SYNC_REPLICAS_NOT_ENOUGH", "LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
}

func (s Status) String() string {
	if s >= 0 && int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "Status(" + strconv.Itoa(int(s)) + ")"
}

// Stored reports whether the message is in the log although the wanted durability may not have been reached.
func (s Status) Stored() bool { return s <= SlaveNotAvailable }

// GetStatus is the outcome of a Get. String gives the name Apache uses, which is also the remark of a pull response.
type GetStatus int8

// Outcomes of a Get.
const (
	Found GetStatus = iota
	NoMatchedMessage
	MessageWasRemoving
	OffsetFoundNull
	OffsetOverflowBadly
	OffsetOverflowOne
	OffsetTooSmall
	NoMatchedLogicQueue
	NoMessageInQueue
	OffsetReset
	GetFailed // not Apache's: the disk failed, see GetResult.Err
)

var getStatusNames = [...]string{
	"FOUND", "NO_MATCHED_MESSAGE", "MESSAGE_WAS_REMOVING", "OFFSET_FOUND_NULL", "OFFSET_OVERFLOW_BADLY",
	"OFFSET_OVERFLOW_ONE", "OFFSET_TOO_SMALL", "NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE", "OFFSET_RESET", "GET_FAILED",
}

func (s GetStatus) String() string {
	if s >= 0 && int(s) < len(getStatusNames) {
		return getStatusNames[s]
	}
	return "GetStatus(" + strconv.Itoa(int(s)) + ")"
}
