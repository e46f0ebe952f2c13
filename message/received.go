package message

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
)

// Received is a message as a consumer gets it: decompressed, and taken out of an inner batch.
type Received struct {
	Message
	QueueID                   int32
	QueueOffset               int64
	PhysicalOffset            int64
	Size                      int32  // bytes of the record; 0 for a message of an inner batch
	SysFlag                   int32  // as stored, without FlagCompressed if the body was decompressed
	BodyCRC                   uint32 // of the stored body; 0 for a message of an inner batch
	BornTimestamp             int64  // ms
	BornHost                  netip.AddrPort
	StoreTimestamp            int64 // ms
	StoreHost                 netip.AddrPort
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
}

// OffsetID returns the id by which the broker finds the record. Messages of one inner batch share it.
func (r *Received) OffsetID() string { return FormatOffsetID(r.StoreHost, r.PhysicalOffset) }

// ReceiveOptions says how DecodeMessages treats bodies.
type ReceiveOptions struct {
	VerifyBodyCRC bool // a record whose body does not match its CRC is an error
	KeepBatches   bool // give an inner batch as one message, its body as it is
	BodyLimit     int  // the most bytes of a decompressed body; 0: DefaultDecompressLimit
}

// DecodeMessages iterates over the messages in records that follow one another, as a broker sends them. Nothing it
// yields aliases b. A record that is broken or cut off ends the iteration with an error that names its place in b;
// a body that cannot be decompressed or a broken inner batch gives an error for that record and goes on behind it.
func DecodeMessages(b []byte, o ReceiveOptions) iter.Seq2[Received, error] {
	return func(yield func(Received, error) bool) {
		for pos := 0; pos < len(b); {
			v, err := ParseView(b[pos:], DecodeOptions{})
			if err != nil {
				yield(Received{}, fmt.Errorf("cannot decode record at byte %d of %d: %w", pos, len(b), err))
				return
			}
			if !receive(v, pos, o, yield) {
				return
			}
			pos += len(v)
		}
	}
}

// receive yields the message or messages of one record; false means that the caller wants no more.
func receive(v View, pos int, o ReceiveOptions, yield func(Received, error) bool) bool {
	fail := func(err error) bool {
		return yield(Received{}, fmt.Errorf("cannot decode message of record at byte %d: %w", pos, err))
	}
	rec := v.Record()
	if o.VerifyBodyCRC {
		if got := BodyCRC(rec.Body); got != rec.BodyCRC {
			return fail(&CorruptError{CorruptBodyCRC, int64(rec.BodyCRC), int64(got)})
		}
	}
	body, err := Decompress(rec.Body, rec.SysFlag, o.BodyLimit)
	if err != nil {
		return fail(err)
	}
	if rec.SysFlag&FlagCompressed == 0 {
		body = bytes.Clone(body)
	}
	out := receivedOf(&rec, body)
	if rec.SysFlag&FlagInnerBatch == 0 || rec.SysFlag&FlagNeedUnwrap == 0 || o.KeepBatches {
		return yield(out, nil)
	}
	index := int64(0)
	for item, err := range SplitBatch(body) {
		if err != nil {
			return fail(err)
		}
		inner := out
		inner.Size, inner.BodyCRC, inner.ReconsumeTimes, inner.PreparedTransactionOffset = 0, 0, 0, 0
		inner.Flag, inner.Body = item.Flag, item.Body
		inner.Properties = ParseProperties(item.Properties)
		inner.QueueOffset += index
		index++
		if !yield(inner, nil) {
			return false
		}
	}
	return true
}

// receivedOf copies what rec aliases, except for the body, which is given.
func receivedOf(rec *Record, body []byte) Received {
	return Received{
		Message: Message{
			Topic:      string(rec.Topic),
			Flag:       rec.Flag,
			Body:       body,
			Properties: ParseProperties(rec.Properties),
		},
		QueueID:                   rec.QueueID,
		QueueOffset:               rec.QueueOffset,
		PhysicalOffset:            rec.PhysicalOffset,
		Size:                      rec.Size,
		SysFlag:                   rec.SysFlag &^ FlagCompressed,
		BodyCRC:                   rec.BodyCRC,
		BornTimestamp:             rec.BornTimestamp,
		BornHost:                  rec.BornHost,
		StoreTimestamp:            rec.StoreTimestamp,
		StoreHost:                 rec.StoreHost,
		ReconsumeTimes:            rec.ReconsumeTimes,
		PreparedTransactionOffset: rec.PreparedTransactionOffset,
	}
}

// Clone returns a copy that shares nothing with r.
func (r *Received) Clone() Received {
	c := *r
	c.Body = bytes.Clone(r.Body)
	c.Properties = maps.Clone(r.Properties)
	return c
}

// IsCorrupt reports whether err says that bytes are not what they have to be (a *CorruptError or *BatchError), as
// opposed to being cut off.
func IsCorrupt(err error) bool {
	var c *CorruptError
	var b *BatchError
	return errors.As(err, &c) || errors.As(err, &b)
}
