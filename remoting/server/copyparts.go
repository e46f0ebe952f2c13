package server

import (
	"errors"
	"fmt"
	"runtime/debug"

	"mqx/remoting"
)

// gatherCopy appends parts to dst. A page of a mapped file that cannot be read
// is an error.
func gatherCopy(dst []byte, parts [][]byte) (out []byte, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			out, err = dst, errors.New(fmt.Sprint(p))
		}
	}()
	out = dst
	for _, p := range parts {
		out = append(out, p...)
	}
	return out, nil
}

// appendParts appends the frame head+parts to what is pending, and frees head.
// A body that cannot be read becomes a SYSTEM_ERROR. cmd is what head encodes.
// The caller holds c.out.
func (c *Conn) appendParts(cmd *remoting.Command, head *outbuf, parts [][]byte) {
	defer head.free()
	o := c.out.buf
	if o == nil {
		o = newOutbuf()
		c.out.buf = o
	}
	mark := len(o.b)
	b, err := gatherCopy(append(o.b, head.b...), parts)
	if err != nil {
		b, _ = c.encodeFailure(o.b[:mark], cmd, fmt.Errorf("cannot read the body: %w", err))
	}
	o.b = b
	o.frames++
}
