package message

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"mqx/internal/clock"
)

// UniqueID is a client's message id taken apart: the UNIQ_KEY property. Rule: docs/format/message-id.md.
type UniqueID struct {
	IP      netip.Addr
	PID     uint16 // the low half of the process id
	Class   uint32 // tells generators of one process apart
	Millis  uint32 // since the start of the month, in the client's time zone
	Counter uint16
}

// ParseUniqueID takes an id apart, in upper or lower case. The error is an *IDError. Any 32 or 56 hex digits are a
// unique id, an offset id too.
func ParseUniqueID(s string) (UniqueID, error) {
	b, n, err := decodeID(s)
	if err != nil {
		return UniqueID{}, err
	}
	p := n - 12
	addr, _ := netip.AddrFromSlice(b[:p])
	be := binary.BigEndian
	return UniqueID{addr, be.Uint16(b[p:]), be.Uint32(b[p+2:]), be.Uint32(b[p+6:]), be.Uint16(b[p+10:])}, nil
}

// Append appends the id's text. An address that is not valid counts as 0.0.0.0.
func (u UniqueID) Append(dst []byte) []byte {
	var b [16 + 12]byte
	n := 4
	switch {
	case needsV6(u.IP):
		ip := u.IP.As16()
		n = copy(b[:], ip[:])
	case u.IP.IsValid():
		ip := u.IP.As4()
		copy(b[:], ip[:])
	}
	be := binary.BigEndian
	be.PutUint16(b[n:], u.PID)
	be.PutUint32(b[n+2:], u.Class)
	be.PutUint32(b[n+6:], u.Millis)
	be.PutUint16(b[n+10:], u.Counter)
	return appendHex(dst, b[:n+12])
}

// String returns the id's text.
func (u UniqueID) String() string {
	var b [IDLenV6]byte
	return string(u.Append(b[:0]))
}

// Time returns when the id was made, if that was within a month before now: the id holds no more than the time within
// a month. Months are those of now's time zone.
func (u UniqueID) Time(now time.Time) time.Time {
	since := time.Duration(u.Millis) * time.Millisecond
	start := monthStart(now, 0)
	if t := start.Add(since); !t.After(now) {
		return t
	}
	return monthStart(now, -1).Add(since)
}

func monthStart(t time.Time, plus time.Month) time.Time {
	return time.Date(t.Year(), t.Month()+plus, 1, 0, 0, 0, 0, t.Location())
}

// IDGenerator makes unique ids. It is safe to share.
type IDGenerator struct {
	clock   clock.Clock
	ip      netip.Addr
	pid     uint16
	class   uint32
	counter atomic.Uint32
	month   atomic.Pointer[month]
}

// month is the span that ids count from, in Unix ms.
type month struct{ start, end int64 }

// generators counts the generators of this process.
var generators atomic.Uint32

// NewIDGenerator returns a generator for a client on that address and process. It panics if ip is not valid.
func NewIDGenerator(ip netip.Addr, pid int, clock clock.Clock) *IDGenerator {
	if !ip.IsValid() {
		panic("message: id generator without an address")
	}
	// Generators must differ when address and process do not: on hosts that share an address, and within a process.
	seed := uint64(clock.Now().UnixNano()) ^ uint64(pid)<<32 ^ uint64(generators.Add(1))*0x9E3779B97F4A7C15
	seed = (seed ^ seed>>31) * 0xBF58476D1CE4E5B9
	return &IDGenerator{clock: clock, ip: ip.Unmap().WithZone(""), pid: uint16(pid), class: uint32(seed >> 32)}
}

// Next returns a new id.
func (g *IDGenerator) Next() string {
	var b [IDLenV6]byte
	return string(g.AppendNext(b[:0]))
}

// AppendNext appends a new id. It allocates nothing if dst has room for IDLenV6 bytes.
func (g *IDGenerator) AppendNext(dst []byte) []byte {
	now := g.clock.Now()
	ms := now.UnixMilli()
	m := g.month.Load()
	if m == nil || ms >= m.end || ms < m.start {
		m = &month{monthStart(now, 0).UnixMilli(), monthStart(now, 1).UnixMilli()}
		g.month.Store(m)
	}
	id := UniqueID{g.ip, g.pid, g.class, uint32(ms - m.start), uint16(g.counter.Add(1) - 1)}
	return id.Append(dst)
}

// GoString helps to read ids in test failures.
func (u UniqueID) GoString() string {
	return fmt.Sprintf("UniqueID{%s pid %d class %08X ms %d no %d}", u.IP, u.PID, u.Class, u.Millis, u.Counter)
}
