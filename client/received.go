package client

import (
	"mqx/message"
	"mqx/remoting"
)

// Received is a message as it came from a broker, decompressed, with the queue it came
// from and the two ids it goes by.
type Received struct {
	message.Received
	Queue     remoting.MessageQueue
	MessageID string // unique id of the producer; OffsetID where it has none
	OffsetID  string // id by which the broker finds the record
}
