package message

import (
	"encoding/binary"
	"net/netip"
)

// View is the bytes of one whole record whose lengths have been checked (ParseView does). Its methods read single
// fields and allocate nothing; what they return aliases the view. On bytes that were not checked they may panic.
type View []byte

// Size returns the length in the record's head, which is len(v) for a checked view.
func (v View) Size() int32 { return int32(binary.BigEndian.Uint32(v[posSize:])) }

// Magic returns MagicV1 or MagicV2.
func (v View) Magic() int32 { return int32(binary.BigEndian.Uint32(v[posMagic:])) }

// BodyCRC returns the stored checksum of the body.
func (v View) BodyCRC() uint32 { return binary.BigEndian.Uint32(v[posBodyCRC:]) }

// QueueID returns the queue within the topic.
func (v View) QueueID() int32 { return int32(binary.BigEndian.Uint32(v[posQueueID:])) }

// Flag returns the user's own flag.
func (v View) Flag() int32 { return int32(binary.BigEndian.Uint32(v[posFlag:])) }

// QueueOffset returns the offset in the queue; 0 for prepared and rolled back transaction records.
func (v View) QueueOffset() int64 { return QueueOffsetOf(v) }

// PhysicalOffset returns the offset in the commit log.
func (v View) PhysicalOffset() int64 { return PhysicalOffsetOf(v) }

// SysFlag returns the system flags.
func (v View) SysFlag() int32 { return SysFlagOf(v) }

// Transaction returns the transaction state, one of the Transaction constants.
func (v View) Transaction() int32 { return SysFlagOf(v) & FlagTransactionMask }

// BornTimestamp returns the producer's time of the message, in ms.
func (v View) BornTimestamp() int64 { return int64(binary.BigEndian.Uint64(v[posBornTimestamp:])) }

// BornHost returns the producer's address.
func (v View) BornHost() netip.AddrPort {
	return hostAt(v[posBornHost:], v.SysFlag()&FlagBornHostV6 != 0)
}

// StoreTimestamp returns the broker's time of the message, in ms.
func (v View) StoreTimestamp() int64 { return StoreTimestampOf(v) }

// StoreHost returns the broker's address.
func (v View) StoreHost() netip.AddrPort {
	return hostAt(v[storeTimestampPos(v)+8:], v.SysFlag()&FlagStoreHostV6 != 0)
}

// ReconsumeTimes returns how often the message was delivered in vain.
func (v View) ReconsumeTimes() int32 { return int32(binary.BigEndian.Uint32(v[v.afterHosts():])) }

// PreparedTransactionOffset returns the physical offset of the half message that this record commits, else 0.
func (v View) PreparedTransactionOffset() int64 {
	return int64(binary.BigEndian.Uint64(v[v.afterHosts()+lenReconsume:]))
}

// BodyLen returns the length of the stored body.
func (v View) BodyLen() int {
	return int(binary.BigEndian.Uint32(v[v.afterHosts()+lenReconsume+lenPrepared:]))
}

// Body returns the body as stored.
func (v View) Body() []byte {
	p := v.afterHosts() + lenReconsume + lenPrepared + lenBodyLen
	return v[p : p+v.BodyLen() : p+v.BodyLen()]
}

// Topic returns the topic.
func (v View) Topic() []byte {
	p, n := v.topicAt()
	return v[p : p+n : p+n]
}

// Properties returns the raw properties.
func (v View) Properties() []byte {
	p, n := v.topicAt()
	p += n
	n = int(binary.BigEndian.Uint16(v[p:]))
	p += 2
	return v[p : p+n : p+n]
}

// Property returns the value of one property; see the function of that name.
func (v View) Property(name string) ([]byte, bool) { return Property(v.Properties(), name) }

// topicAt returns where the topic begins and its length.
func (v View) topicAt() (p, n int) {
	p = v.afterHosts() + lenReconsume + lenPrepared
	p += lenBodyLen + int(binary.BigEndian.Uint32(v[p:]))
	if v.Magic() == MagicV2 {
		return p + 2, int(binary.BigEndian.Uint16(v[p:]))
	}
	return p + 1, int(v[p])
}

// afterHosts returns the place of the reconsume times.
func (v View) afterHosts() int {
	return storeTimestampPos(v) + 8 + hostLen(SysFlagOf(v), FlagStoreHostV6)
}

func storeTimestampPos(rec []byte) int { return posBornHost + hostLen(SysFlagOf(rec), FlagBornHostV6) }

// QueueOffsetOf reads the queue offset of an encoded record.
func QueueOffsetOf(rec []byte) int64 { return int64(binary.BigEndian.Uint64(rec[posQueueOffset:])) }

// PhysicalOffsetOf reads the physical offset of an encoded record.
func PhysicalOffsetOf(rec []byte) int64 {
	return int64(binary.BigEndian.Uint64(rec[posPhysicalOffset:]))
}

// SysFlagOf reads the system flags of an encoded record.
func SysFlagOf(rec []byte) int32 { return int32(binary.BigEndian.Uint32(rec[posSysFlag:])) }

// StoreTimestampOf reads the store time (ms) of an encoded record.
func StoreTimestampOf(rec []byte) int64 {
	return int64(binary.BigEndian.Uint64(rec[storeTimestampPos(rec):]))
}

// hostAt reads an address and its port, whose upper two bytes are not used.
func hostAt(b []byte, v6 bool) netip.AddrPort {
	if v6 {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])), uint16(binary.BigEndian.Uint32(b[16:])))
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[:4])), uint16(binary.BigEndian.Uint32(b[4:])))
}
