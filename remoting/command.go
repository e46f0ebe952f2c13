package remoting

// Serialize is the encoding of a frame's header, byte 4 of the frame.
type Serialize byte

const (
	// SerializeJSON is the JSON header, the default of every peer.
	SerializeJSON Serialize = 0
	// SerializeROCKETMQ is the binary header. It carries the code in 16 bits.
	SerializeROCKETMQ Serialize = 1
)

// String returns "JSON" or "ROCKETMQ".
func (s Serialize) String() string {
	switch s {
	case SerializeJSON:
		return "JSON"
	case SerializeROCKETMQ:
		return "ROCKETMQ"
	}
	return "unknown"
}

// Flag bits of a command.
const (
	// FlagResponse marks a response.
	FlagResponse int32 = 1
	// FlagOneway marks a request that is never answered, not even on error.
	FlagOneway int32 = 2
)

// Command is one request or response: the header and the body of a frame.
//
// A Command may be reused: Decode overwrites it and keeps its buffers. It is
// not safe to share while one goroutine changes it.
type Command struct {
	Code     int32
	Language Language
	Version  int32
	Opaque   int32
	Flag     int32
	// Remark is the text of a response, mostly an error text. The wire knows
	// null besides the empty text; both read as "", and "" is not written.
	Remark string
	// Fields are the header extension fields in the order of the frame. After
	// Decode they alias the frame or buffers of the Command.
	Fields Fields
	// EmptyFields says that the JSON header held an empty extFields object,
	// or that one is to be written while Fields is empty.
	EmptyFields bool
	// Body aliases the frame after Decode; nil when the frame has none.
	Body []byte
	// Serialize is the header encoding that Decode found.
	Serialize Serialize

	scratch []byte // unescaped JSON strings, reused by Decode
}

// Reset clears c for reuse and keeps its buffers.
func (c *Command) Reset() {
	clear(c.Fields[:cap(c.Fields)])
	c.reuse()
}

// reuse is Reset without letting go of what old fields point to.
func (c *Command) reuse() {
	*c = Command{Fields: c.Fields[:0], scratch: c.scratch[:0]}
}

// IsResponse reports whether c is a response.
func (c *Command) IsResponse() bool { return c.Flag&FlagResponse != 0 }

// IsOneway reports whether c is a request without an answer.
func (c *Command) IsOneway() bool { return c.Flag&FlagOneway != 0 }

// NewRequest returns a request of this process: language GO, the current
// version, the fields of header (a pointer to a header struct, or nil). The
// caller sets Opaque and Body. The send codes with short field names get
// those.
func NewRequest(code int32, header any) *Command {
	c := &Command{Code: code, Language: LanguageGo, Version: Version}
	if header == nil {
		return c
	}
	if h, ok := header.(*SendMessageHeader); ok {
		EncodeSend(&c.Fields, h, ShortSendNames(code))
		return c
	}
	EncodeHeader(&c.Fields, header)
	return c
}

// NewResponse returns the response of this process to req, with its opaque.
func NewResponse(req *Command, code int32, remark string) *Command {
	return &Command{Code: code, Language: LanguageGo, Version: Version, Opaque: req.Opaque, Flag: FlagResponse, Remark: remark}
}
