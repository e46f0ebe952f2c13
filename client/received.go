package client

import (
	"net/netip"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// Received is a message as it came from a broker, its body decompressed.
type Received struct {
	message.Message
	Queue          remoting.MessageQueue
	QueueOffset    int64
	PhysicalOffset int64
	MessageID      string // unique id of the producer, else OffsetID
	OffsetID       string
	SysFlag        int32 // as stored, with the compression bit cleared when the body was decompressed
	BornTime       time.Time
	StoreTime      time.Time
	BornHost       netip.AddrPort
	StoreHost      netip.AddrPort
	ReconsumeTimes int32
	StoreSize      int32
	BodyCRC        uint32
}
