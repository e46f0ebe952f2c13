package remoting

import (
	"encoding/binary"
	"math"
)

// binaryFixed is the length of the binary header without remark and fields.
const binaryFixed = 2 + 1 + 2 + 4 + 4 + 4 + 4

// decodeBinary reads a ROCKETMQ header (docs/wire/headers.md).
func (c *Command) decodeBinary(h []byte) error {
	if len(h) < binaryFixed {
		return &HeaderError{SerializeROCKETMQ, len(h), "header ends early"}
	}
	c.Code = int32(int16(binary.BigEndian.Uint16(h)))
	c.Language = Language(h[2])
	c.Version = int32(int16(binary.BigEndian.Uint16(h[3:])))
	c.Opaque = int32(binary.BigEndian.Uint32(h[5:]))
	c.Flag = int32(binary.BigEndian.Uint32(h[9:]))
	remark, at, ok := binaryBytes(h, 13)
	if !ok {
		return &HeaderError{SerializeROCKETMQ, 13, "remark runs over the end"}
	}
	c.Remark = string(remark)
	if len(h)-at < 4 {
		return &HeaderError{SerializeROCKETMQ, at, "header ends early"}
	}
	fields, end, ok := binaryBytes(h, at)
	if !ok {
		return &HeaderError{SerializeROCKETMQ, at, "fields run over the end"}
	}
	if end != len(h) {
		return &HeaderError{SerializeROCKETMQ, end, "header has bytes after its fields"}
	}
	return c.decodeBinaryFields(fields, end-len(fields))
}

// binaryBytes reads a 4-byte length and as many bytes.
func binaryBytes(h []byte, at int) (b []byte, end int, ok bool) {
	if len(h)-at < 4 {
		return nil, at, false
	}
	n := int(int32(binary.BigEndian.Uint32(h[at:])))
	at += 4
	if n < 0 || n > len(h)-at {
		return nil, at, false
	}
	return h[at : at+n : at+n], at + n, true
}

func (c *Command) decodeBinaryFields(m []byte, base int) error {
	for at := 0; at < len(m); {
		start := at
		if len(m)-at < 2 {
			return &HeaderError{SerializeROCKETMQ, base + start, "field ends early"}
		}
		n := int(int16(binary.BigEndian.Uint16(m[at:])))
		at += 2
		if n < 0 || n > len(m)-at {
			return &HeaderError{SerializeROCKETMQ, base + start, "field name runs over the end"}
		}
		key := m[at : at+n : at+n]
		value, end, ok := binaryBytes(m, at+n)
		if !ok {
			return &HeaderError{SerializeROCKETMQ, base + start, "field value runs over the end"}
		}
		at = end
		if len(value) == 0 {
			value = nil // the binary header has no empty text
		}
		if len(c.Fields) == MaxHeaderFields {
			return ErrTooManyFields
		}
		c.Fields = append(c.Fields, Field{Key: key, Value: value})
	}
	return nil
}

// appendBinary appends the ROCKETMQ header of c.
func (c *Command) appendBinary(dst []byte) ([]byte, error) {
	if c.Code < math.MinInt16 || c.Code > math.MaxInt16 {
		return dst, ErrCodeTooWide
	}
	be := binary.BigEndian
	dst = be.AppendUint16(dst, uint16(c.Code))
	dst = append(dst, byte(c.Language))
	dst = be.AppendUint16(dst, uint16(c.Version))
	dst = be.AppendUint32(dst, uint32(c.Opaque))
	dst = be.AppendUint32(dst, uint32(c.Flag))
	dst = be.AppendUint32(dst, uint32(len(c.Remark)))
	dst = append(dst, c.Remark...)
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, f := range c.Fields {
		if f.Value == nil {
			continue
		}
		if len(f.Key) > math.MaxInt16 {
			return dst, ErrFieldTooLong
		}
		dst = be.AppendUint16(dst, uint16(len(f.Key)))
		dst = append(dst, f.Key...)
		dst = be.AppendUint32(dst, uint32(len(f.Value)))
		dst = append(dst, f.Value...)
	}
	be.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}
