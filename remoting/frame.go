package remoting

import "errors"

// Limits of a frame. A frame that passes one of them is refused.
const (
	// MaxFrame is the largest frame in bytes, its length field included.
	MaxFrame = 16 << 20
	// MaxHeader is the largest header in bytes.
	MaxHeader = 1 << 20
	// MaxHeaderFields is the largest number of header extension fields.
	MaxHeaderFields = 1024
)

// Reasons why a frame is refused. After any of them the connection cannot be
// used further.
var (
	ErrFrameTooLarge = errors.New("frame exceeds the limit")
	ErrFrameTooShort = errors.New("frame is shorter than its own header")
	ErrFrameNegative = errors.New("frame length is negative")
)

// FrameLen returns the whole length of the frame that b starts with, the
// 4 bytes of its length field included. ok is false when b is shorter than
// the length field. A length that no frame may have is an error.
func FrameLen(b []byte) (n int, ok bool, err error) { panic("not yet") }

// Decode reads a whole frame, starting with its length field, into c and
// overwrites it. Fields and Body alias frame; JSON strings with escapes go to
// a buffer of c. Nothing is allocated when c has been used before and the
// header has no remark.
func (c *Command) Decode(frame []byte) error { panic("not yet") }

// AppendFrame appends the whole frame of c.
func (c *Command) AppendFrame(dst []byte, s Serialize) ([]byte, error) { panic("not yet") }

// AppendFrameHeader appends the length field and the header of a frame whose
// body of bodyLen bytes the caller writes after it. c.Body is not looked at.
func (c *Command) AppendFrameHeader(dst []byte, s Serialize, bodyLen int) ([]byte, error) {
	panic("not yet")
}
