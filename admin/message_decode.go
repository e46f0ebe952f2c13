package admin

import (
	"net/netip"
	"time"

	"mqx/message"
)

// DecodedID is what the digits of a message id can mean. A unique id and an offset id have the same form.
type DecodedID struct {
	ID string
	// Offset: it can be an offset id, of the record at PhysicalOffset of the broker that had the address Host.
	Offset         bool
	Host           netip.AddrPort
	PhysicalOffset int64
	// Unique is the id as that of a client, made at Time or a number of months before.
	Unique message.UniqueID
	Time   time.Time
}

// DecodeID takes a message id apart; now tells the month. The error is a *message.IDError.
func DecodeID(id string, now time.Time) (*DecodedID, error) {
	u, err := message.ParseUniqueID(id)
	if err != nil {
		return nil, err
	}
	d := &DecodedID{ID: id, Unique: u, Time: u.Time(now)}
	if host, phys, err := message.ParseOffsetID(id); err == nil {
		d.Offset, d.Host, d.PhysicalOffset = true, host, phys
	}
	return d, nil
}
