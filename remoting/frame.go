package remoting

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Limits of a frame. A frame that passes one of them is refused.
const (
	// MaxFrame is the largest frame in bytes, its length field included.
	MaxFrame = 16 << 20
	// MaxHeader is the largest header of a request in bytes.
	MaxHeader = 1 << 20
	// MaxReplyHeader is the largest header of a response: all that its length field can say. That of a large batch holds
	// an id for each message.
	MaxReplyHeader = 1<<24 - 1
	// MaxHeaderFields is the largest number of header extension fields.
	MaxHeaderFields = 1024
)

// prefixLen is the length of what stands before the header: the frame length,
// the serialize type and the header length.
const prefixLen = 8

// Reasons why a frame is refused. After any of them the connection cannot be
// used further.
var (
	ErrFrameTooLarge    = errors.New("frame exceeds the limit")
	ErrFrameTooShort    = errors.New("frame is shorter than its own header")
	ErrFrameNegative    = errors.New("frame length is negative")
	ErrHeaderTooLarge   = errors.New("frame header exceeds the limit")
	ErrTooManyFields    = errors.New("frame header has too many fields")
	ErrUnknownSerialize = errors.New("unknown serialize type of the frame header")
)

// Reasons why a command cannot be written with the binary header.
var (
	ErrCodeTooWide  = errors.New("code does not fit the 16 bits of a ROCKETMQ header")
	ErrFieldTooLong = errors.New("field name does not fit a ROCKETMQ header")
)

// HeaderError is a frame header that cannot be read.
type HeaderError struct {
	Serialize Serialize
	Offset    int    // bytes from the start of the header
	What      string // what is wrong there
}

func (e *HeaderError) Error() string {
	return fmt.Sprintf("cannot read %s header at byte %d: %s", e.Serialize, e.Offset, e.What)
}

// FrameLen returns the whole length of the frame that b starts with, the
// 4 bytes of its length field included. ok is false when b is shorter than
// the length field. A length that no frame may have is an error.
func FrameLen(b []byte) (n int, ok bool, err error) {
	if len(b) < 4 {
		return 0, false, nil
	}
	rest := int32(binary.BigEndian.Uint32(b))
	switch {
	case rest < 0:
		return 0, true, ErrFrameNegative
	case rest > MaxFrame-4:
		return 0, true, ErrFrameTooLarge
	case rest < 4:
		return 0, true, ErrFrameTooShort
	}
	return int(rest) + 4, true, nil
}

// CheckHeaderLen returns ErrHeaderTooLarge as soon as the beginning of a frame shows it, which spares taking in the rest.
func CheckHeaderLen(b []byte) error {
	if len(b) >= prefixLen && headerLen(b) > MaxHeader {
		return ErrHeaderTooLarge
	}
	return nil
}

func headerLen(frame []byte) int { return int(frame[5])<<16 | int(frame[6])<<8 | int(frame[7]) }

// Decode reads a whole frame, starting with its length field, into c and
// overwrites it. Fields and Body alias frame; JSON strings with escapes go to
// a buffer of c. Nothing is allocated when c has been used before and the
// header has no remark.
func (c *Command) Decode(frame []byte) error { return c.decode(frame, MaxHeader) }

// DecodeReply is Decode for those who have asked: a header may be as long as MaxReplyHeader.
func (c *Command) DecodeReply(frame []byte) error { return c.decode(frame, MaxReplyHeader) }

func (c *Command) decode(frame []byte, maxHeader int) error {
	n, ok, err := FrameLen(frame)
	if err != nil {
		return err
	}
	if !ok || n != len(frame) {
		return ErrFrameTooShort
	}
	headerLen := headerLen(frame)
	if headerLen > n-prefixLen {
		return ErrFrameTooShort
	}
	if headerLen > maxHeader {
		return ErrHeaderTooLarge
	}
	c.reuse()
	header := frame[prefixLen : prefixLen+headerLen : prefixLen+headerLen]
	if body := frame[prefixLen+headerLen:]; len(body) > 0 {
		c.Body = body
	}
	switch c.Serialize = Serialize(frame[4]); c.Serialize {
	case SerializeJSON:
		return c.decodeJSON(header)
	case SerializeROCKETMQ:
		return c.decodeBinary(header)
	}
	return ErrUnknownSerialize
}

// AppendFrame appends the whole frame of c.
func (c *Command) AppendFrame(dst []byte, s Serialize) ([]byte, error) {
	out, err := c.AppendFrameHeader(dst, s, len(c.Body))
	if err != nil {
		return dst, err
	}
	return append(out, c.Body...), nil
}

// AppendFrameHeader appends the length field and the header of a frame whose
// body of bodyLen bytes the caller writes after it. c.Body is not looked at.
// On an error dst is returned as it was.
func (c *Command) AppendFrameHeader(dst []byte, s Serialize, bodyLen int) ([]byte, error) {
	start := len(dst)
	out := append(dst, 0, 0, 0, 0, byte(s), 0, 0, 0)
	switch s {
	case SerializeJSON:
		out = c.appendJSON(out)
	case SerializeROCKETMQ:
		var err error
		if out, err = c.appendBinary(out); err != nil {
			return dst, err
		}
	default:
		return dst, ErrUnknownSerialize
	}
	headerLen := len(out) - start - prefixLen
	if headerLen > MaxReplyHeader || headerLen > MaxHeader && !c.IsResponse() {
		return dst, ErrHeaderTooLarge
	}
	total := prefixLen + headerLen + bodyLen
	if total > MaxFrame {
		return dst, ErrFrameTooLarge
	}
	binary.BigEndian.PutUint32(out[start:], uint32(total-4))
	out[start+5], out[start+6], out[start+7] = byte(headerLen>>16), byte(headerLen>>8), byte(headerLen)
	return out, nil
}
