package remoting

// DecodeHeader fills h, a pointer to a header struct, from f. A required field
// that is absent is a *MissingFieldError, a value that cannot be read a
// *FieldError.
func DecodeHeader(f Fields, h any) error { panic("not yet") }

// EncodeHeader sets the fields of h, a pointer to a header struct, in f.
func EncodeHeader(f *Fields, h any) {}

// ShortSendNames reports whether requests of this code carry the send header
// with the short field names a to n.
func ShortSendNames(code int32) bool {
	return code == ReqSendMessageV2 || code == ReqSendBatchMessage || code == ReqSendReplyMessageV2
}

// EncodeSend sets the fields of a send request, with short names when short is
// set.
func EncodeSend(f *Fields, h *SendMessageHeader, short bool) {}

// DecodeSend is DecodeHeader for send requests without reflection. short says
// which names are expected; the others are accepted too.
func DecodeSend(f Fields, short bool, h *SendMessageHeader) error { return DecodeHeader(f, h) }

// DecodePull is DecodeHeader for pull requests without reflection.
func DecodePull(f Fields, h *PullMessageHeader) error { return DecodeHeader(f, h) }

func parseInt(b []byte, bits int) (int64, error) { panic("not yet") }

func parseBool(b []byte) bool {
	return len(b) == 4 && (b[0]|0x20) == 't' && (b[1]|0x20) == 'r' && (b[2]|0x20) == 'u' && (b[3]|0x20) == 'e'
}
