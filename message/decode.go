package message

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Results of decoding that are not corruption.
var (
	// ErrShort says that the bytes end before the record does.
	ErrShort = errors.New("record: more bytes needed")
	// ErrBlank says that a blank stands here: the rest of the file, as long as its size says, holds no record.
	ErrBlank = errors.New("record: blank up to the end of the file")
)

// CorruptError says what in a record is not as it has to be. The place in the file is for the caller to add.
type CorruptError struct {
	What      string // the field or check
	Want, Got int64
}

// Error names the field, what it should be and what it is.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("record: %s: want %d, got %d", e.What, e.Want, e.Got)
}

// What of a CorruptError.
const (
	CorruptMagic       = "magic code"        // Want MagicV1
	CorruptSize        = "size"              // Want: the least size, or the sum of the parts
	CorruptBodyLen     = "body length"       // Want: the most that fits
	CorruptTopicLen    = "topic length"      // Want: the most that fits
	CorruptPropsLen    = "properties length" // Want: the most that fits
	CorruptBodyCRC     = "body CRC"          // Want: the stored one
	CorruptPropCRC     = "record CRC"        // Want: the stored one
	CorruptPropCRCNone = "record CRC absent" // there is no checksum property
)

// DecodeOptions says how much a decoder checks and takes out.
type DecodeOptions struct {
	VerifyBodyCRC bool // compare the CRC of the body
	VerifyPropCRC bool // compare the checksum property; a record without one is corrupt
	SkipBody      bool // leave Body nil (its CRC is still compared if asked for)
}

// PeekRecord reads the size and magic of the record that starts b. It returns ErrShort if b has less than 8 bytes, and
// a *CorruptError for an unknown magic or a size that is too small for the magic. A blank (MagicBlank) is no error.
func PeekRecord(b []byte) (size, magic int32, err error) {
	if len(b) < BlankLen {
		return 0, 0, ErrShort
	}
	size, magic = int32(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[posMagic:]))
	least := int32(MinRecordLen)
	switch magic {
	case MagicV1:
	case MagicV2:
		least++
	case MagicBlank:
		least = BlankLen
	default:
		return size, magic, &CorruptError{CorruptMagic, int64(MagicV1), int64(magic)}
	}
	if size < least {
		return size, magic, &CorruptError{CorruptSize, int64(least), int64(size)}
	}
	return size, magic, nil
}

// ParseView checks the record that starts b and returns it. Every length is checked against the record's size, and the
// parts have to add up to it exactly. The errors are ErrShort, ErrBlank and *CorruptError; with ErrBlank the view is
// the blank's bytes as far as b has them. The view aliases b.
func ParseView(b []byte, o DecodeOptions) (View, error) {
	size, magic, err := PeekRecord(b)
	if err != nil {
		return nil, err
	}
	if magic == MagicBlank {
		return View(b[:min(int(size), len(b))]), ErrBlank
	}
	if int(size) > len(b) {
		return nil, ErrShort
	}
	v := View(b[:size:size])
	if err := v.checkLengths(); err != nil {
		return nil, err
	}
	if o.VerifyBodyCRC {
		if got := BodyCRC(v.Body()); got != v.BodyCRC() {
			return nil, &CorruptError{CorruptBodyCRC, int64(v.BodyCRC()), int64(got)}
		}
	}
	if o.VerifyPropCRC {
		want, ok := propCRCOf(v)
		if !ok {
			return nil, &CorruptError{What: CorruptPropCRCNone}
		}
		if got := checksum(v[:len(v)-PropCRCLen]) & crcMask; got != want {
			return nil, &CorruptError{CorruptPropCRC, int64(want), int64(got)}
		}
	}
	return v, nil
}

// checkLengths walks the parts behind the hosts; v has its full size, which is at least MinRecordLen.
func (v View) checkLengths() error {
	topicLenSize := 1
	if v.Magic() == MagicV2 {
		topicLenSize = 2
	}
	flags := v.SysFlag()
	// The parts of fixed length, of which the size must have room before any field behind the hosts is read.
	fixed := posBornHost + hostLen(flags, FlagBornHostV6) + 8 + hostLen(flags, FlagStoreHostV6) +
		lenReconsume + lenPrepared + lenBodyLen + topicLenSize + 2
	free := len(v) - fixed
	if free < 0 {
		return &CorruptError{CorruptSize, int64(fixed), int64(len(v))}
	}
	p := v.afterHosts() + lenReconsume + lenPrepared
	n := int(int32(binary.BigEndian.Uint32(v[p:])))
	if n < 0 || n > free {
		return &CorruptError{CorruptBodyLen, int64(free), int64(n)}
	}
	p += lenBodyLen + n
	free -= n
	if topicLenSize == 2 {
		n = int(int16(binary.BigEndian.Uint16(v[p:])))
	} else {
		n = int(int8(v[p]))
	}
	if n < 0 || n > free {
		return &CorruptError{CorruptTopicLen, int64(free), int64(n)}
	}
	p += topicLenSize + n
	free -= n
	n = int(int16(binary.BigEndian.Uint16(v[p:])))
	if n < 0 || n > free {
		return &CorruptError{CorruptPropsLen, int64(free), int64(n)}
	}
	if n != free {
		return &CorruptError{CorruptSize, int64(len(v) - free + n), int64(len(v))}
	}
	return nil
}

// Record takes all fields out of a checked view. Body, Topic and Properties alias it.
func (v View) Record() Record {
	return Record{
		Magic:                     v.Magic(),
		Size:                      v.Size(),
		BodyCRC:                   v.BodyCRC(),
		QueueID:                   v.QueueID(),
		Flag:                      v.Flag(),
		QueueOffset:               v.QueueOffset(),
		PhysicalOffset:            v.PhysicalOffset(),
		SysFlag:                   v.SysFlag(),
		BornTimestamp:             v.BornTimestamp(),
		BornHost:                  v.BornHost(),
		StoreTimestamp:            v.StoreTimestamp(),
		StoreHost:                 v.StoreHost(),
		ReconsumeTimes:            v.ReconsumeTimes(),
		PreparedTransactionOffset: v.PreparedTransactionOffset(),
		Body:                      v.Body(),
		Topic:                     v.Topic(),
		Properties:                v.Properties(),
	}
}

// DecodeRecord decodes the record that starts b; errors and checks are those of ParseView. With ErrBlank the result
// has Size and Magic of the blank. Body, Topic and Properties alias b.
func DecodeRecord(b []byte, o DecodeOptions) (Record, error) {
	v, err := ParseView(b, o)
	if err != nil {
		if errors.Is(err, ErrBlank) {
			return Record{Size: v.Size(), Magic: v.Magic()}, err
		}
		return Record{}, err
	}
	r := v.Record()
	if o.SkipBody {
		r.Body = nil
	}
	return r, nil
}
