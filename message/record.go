package message

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
)

// Magic codes, the second four bytes of a record.
const (
	MagicV1    int32 = -626843481 // 0xDAA320A7: topic length takes one byte
	MagicV2    int32 = -626843477 // 0xDAA320AB: topic length takes two bytes
	MagicBlank int32 = -875286124 // 0xCBD43194: the rest of the file is empty
)

// Limits of the layout. They are what the length fields can hold, not what a broker is configured to accept.
const (
	MaxTopicLenV1    = math.MaxInt8  // bytes of topic in a version 1 record
	MaxPropertiesLen = math.MaxInt16 // bytes of properties in a record or batch item
	BlankLen         = 8             // the least length of a blank, size and magic

	// MinRecordLen is the length of the shortest record: IPv4 hosts, version 1, empty body, topic and properties.
	MinRecordLen = 91
)

// Places of the fields that do not move.
const (
	posSize           = 0
	posMagic          = 4
	posBodyCRC        = 8
	posQueueID        = 12
	posFlag           = 16
	posQueueOffset    = 20
	posPhysicalOffset = 28
	posSysFlag        = 36
	posBornTimestamp  = 40
	posBornHost       = 48

	hostLenV4 = 8
	hostLenV6 = 20

	// What follows the store host: reconsume times, prepared transaction offset, body length.
	lenReconsume = 4
	lenPrepared  = 8
	lenBodyLen   = 4
)

// crcMask clears the sign bit of a CRC-32, as Java stores it in an int.
const crcMask = 0x7FFFFFFF

// Record is one record of the commit log with all its fields. Rule: docs/format/record.md.
//
// Body, Topic and Properties of a decoded record alias the decoded bytes. A Record may be copied.
type Record struct {
	Magic                     int32  // MagicV1 or MagicV2; 0 when encoding means whatever the topic needs
	Size                      int32  // bytes of the whole record; set by decoding, ignored by encoding
	BodyCRC                   uint32 // CRC-32 of Body without its top bit; set by decoding, computed by encoding
	QueueID                   int32
	Flag                      int32 // the user's own
	QueueOffset               int64
	PhysicalOffset            int64
	SysFlag                   int32
	BornTimestamp             int64 // ms
	BornHost                  netip.AddrPort
	StoreTimestamp            int64 // ms
	StoreHost                 netip.AddrPort
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	Body                      []byte // as stored: compressed if SysFlag says so
	Topic                     []byte
	Properties                []byte // raw, name 0x01 value 0x02 …
}

// LimitError says that a record cannot be encoded because a field is longer than the layout can express.
type LimitError struct {
	Field       string
	Len, Limit  int
	AfterCRCTag bool // Len includes the bytes reserved for the checksum property
}

// Error names the field, its length and the limit.
func (e *LimitError) Error() string {
	if e.AfterCRCTag {
		return fmt.Sprintf("record: %s takes %d bytes with the checksum property, the limit is %d", e.Field, e.Len, e.Limit)
	}
	return fmt.Sprintf("record: %s takes %d bytes, the limit is %d", e.Field, e.Len, e.Limit)
}

// Check reports with a *LimitError that r does not fit the layout: topic or properties longer than 32767 bytes, or a
// record of 2 GiB. A broker has narrower limits of its own.
func (r *Record) Check(propCRC bool) error {
	if len(r.Topic) > math.MaxInt16 {
		return &LimitError{Field: "topic", Len: len(r.Topic), Limit: math.MaxInt16}
	}
	if n := r.propertiesLen(propCRC); n > MaxPropertiesLen {
		return &LimitError{Field: "properties", Len: n, Limit: MaxPropertiesLen, AfterCRCTag: propCRC}
	}
	if n := r.EncodedLen(propCRC); n > math.MaxInt32 {
		return &LimitError{Field: "body", Len: n, Limit: math.MaxInt32}
	}
	return nil
}

// version returns the magic code to encode with. Apache turns to version 2 when a topic has more than 127
// characters; 127 bytes is the same for the names that are allowed, and what a version 1 length can hold for others.
func (r *Record) version() int32 {
	if r.Magic == MagicV2 || len(r.Topic) > MaxTopicLenV1 {
		return MagicV2
	}
	return MagicV1
}

// flags returns SysFlag with the bits that the two addresses ask for.
func (r *Record) flags() int32 {
	f := r.SysFlag
	if needsV6(r.BornHost.Addr()) {
		f |= FlagBornHostV6
	}
	if needsV6(r.StoreHost.Addr()) {
		f |= FlagStoreHostV6
	}
	return f
}

func needsV6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }

func hostLen(sysFlag, bit int32) int {
	if sysFlag&bit != 0 {
		return hostLenV6
	}
	return hostLenV4
}

// propertiesLen returns the length of the properties field as encoded.
func (r *Record) propertiesLen(propCRC bool) int {
	if !propCRC {
		return len(r.Properties)
	}
	props := withoutPropCRC(r.Properties)
	n := len(props) + PropCRCLen
	if len(props) > 0 && props[len(props)-1] != PropertySeparator {
		n++
	}
	return n
}

// EncodedLen returns the number of bytes that Append adds.
func (r *Record) EncodedLen(propCRC bool) int {
	flags := r.flags()
	n := posBornHost + hostLen(flags, FlagBornHostV6) + 8 + hostLen(flags, FlagStoreHostV6) +
		lenReconsume + lenPrepared + lenBodyLen + len(r.Body) + 1 + len(r.Topic) + 2 + r.propertiesLen(propCRC)
	if r.version() == MagicV2 {
		n++
	}
	return n
}

// Append encodes r behind dst. It does not allocate if dst has room for EncodedLen bytes more. It computes the body
// CRC and sets the host bits of the stored SysFlag where an address is IPv6; a zero address becomes 0.0.0.0.
//
// With propCRC it leaves room for the checksum property at the end, which SealPropCRC fills in once PatchOffsets has
// run. Append panics with the *LimitError of Check if r does not fit the layout: the log must not get such bytes.
func (r *Record) Append(dst []byte, propCRC bool) []byte {
	if err := r.Check(propCRC); err != nil {
		panic(err)
	}
	start, n := len(dst), r.EncodedLen(propCRC)
	dst = slices.Grow(dst, n)[:start+n]
	b := dst[start:]
	be := binary.BigEndian
	magic, flags := r.version(), r.flags()

	be.PutUint32(b[posSize:], uint32(n))
	be.PutUint32(b[posMagic:], uint32(magic))
	be.PutUint32(b[posBodyCRC:], BodyCRC(r.Body))
	be.PutUint32(b[posQueueID:], uint32(r.QueueID))
	be.PutUint32(b[posFlag:], uint32(r.Flag))
	be.PutUint64(b[posQueueOffset:], uint64(r.QueueOffset))
	be.PutUint64(b[posPhysicalOffset:], uint64(r.PhysicalOffset))
	be.PutUint32(b[posSysFlag:], uint32(flags))
	be.PutUint64(b[posBornTimestamp:], uint64(r.BornTimestamp))
	p := posBornHost
	p += putHost(b[p:], r.BornHost, flags&FlagBornHostV6 != 0)
	be.PutUint64(b[p:], uint64(r.StoreTimestamp))
	p += 8
	p += putHost(b[p:], r.StoreHost, flags&FlagStoreHostV6 != 0)
	be.PutUint32(b[p:], uint32(r.ReconsumeTimes))
	be.PutUint64(b[p+4:], uint64(r.PreparedTransactionOffset))
	be.PutUint32(b[p+12:], uint32(len(r.Body)))
	p += lenReconsume + lenPrepared + lenBodyLen
	p += copy(b[p:], r.Body)
	if magic == MagicV2 {
		be.PutUint16(b[p:], uint16(len(r.Topic)))
		p += 2
	} else {
		b[p] = byte(len(r.Topic))
		p++
	}
	p += copy(b[p:], r.Topic)
	r.putProperties(b[p:], propCRC)
	return dst
}

// putProperties fills the tail of a record: length, properties, and the room for the checksum property.
func (r *Record) putProperties(b []byte, propCRC bool) {
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	if !propCRC {
		copy(b[2:], r.Properties)
		return
	}
	props := withoutPropCRC(r.Properties)
	p := 2 + copy(b[2:], props)
	if len(props) > 0 && props[len(props)-1] != PropertySeparator {
		b[p] = PropertySeparator
	}
	putPropCRC(b[len(b)-PropCRCLen:], 0)
}

// BodyCRC returns the checksum of a stored body: CRC-32 (IEEE) without the top bit.
func BodyCRC(body []byte) uint32 { return checksum(body) & crcMask }

// putHost writes address and port and returns the length.
func putHost(b []byte, host netip.AddrPort, v6 bool) int {
	a, n := host.Addr(), 4
	switch {
	case v6:
		n = 16
		var ip [16]byte
		if a.IsValid() {
			ip = a.As16()
		}
		copy(b, ip[:])
	case a.IsValid():
		ip := a.As4()
		copy(b, ip[:])
	default:
		clear(b[:4])
	}
	binary.BigEndian.PutUint32(b[n:], uint32(host.Port()))
	return n + 4
}

// PatchOffsets fills in what is known only under the append lock: rec is one encoded record. Records of a prepared
// or rolled back transaction get the queue offset 0.
func PatchOffsets(rec []byte, queueOffset, physicalOffset, storeTimestamp int64) {
	be := binary.BigEndian
	be.PutUint64(rec[posQueueOffset:], uint64(queueOffset))
	be.PutUint64(rec[posPhysicalOffset:], uint64(physicalOffset))
	p := posBornHost + hostLen(int32(be.Uint32(rec[posSysFlag:])), FlagBornHostV6)
	be.PutUint64(rec[p:], uint64(storeTimestamp))
}

// SetPlace gives an encoded record another topic of the same length, queue and queue offset. A record that carries a
// checksum of itself (__CRC32#) does not match it any more.
func (v View) SetPlace(topic []byte, queueID int32, queueOffset int64) error {
	p, n := v.topicAt()
	if len(topic) != n {
		return fmt.Errorf("cannot set topic %q of a record: it has %d bytes, the old one %d", topic, len(topic), n)
	}
	copy(v[p:], topic)
	binary.BigEndian.PutUint32(v[posQueueID:], uint32(queueID))
	binary.BigEndian.PutUint64(v[posQueueOffset:], uint64(queueOffset))
	return nil
}

// AppendBlank appends the head of a blank that fills size bytes up to the end of a file. Only these 8 bytes are
// written; what follows in the file stays as it is. It panics if size is less than BlankLen.
func AppendBlank(dst []byte, size int32) []byte {
	if size < BlankLen {
		panic(fmt.Sprintf("message: blank of %d bytes", size))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	magic := MagicBlank
	return binary.BigEndian.AppendUint32(dst, uint32(magic))
}
