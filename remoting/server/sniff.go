package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// The first byte of a connection tells what it is: no frame may be so long
// that its length field begins with one of these.
const (
	firstTLS     = 0x16 // a handshake record
	firstProxyV1 = 'P'
	firstProxyV2 = '\r'
)

const (
	maxProxyV1 = 107
	minProxyV2 = 16
	maxProxyV2 = 4096
)

var (
	proxyV1 = []byte("PROXY ")
	proxyV2 = []byte("\r\n\r\n\x00\r\nQUIT\n")
)

var errProxyHeader = errors.New("not a PROXY protocol header")

// sniff looks at the first bytes of a connection: it takes off a PROXY header
// and finds TLS. It returns the bytes that belong to frames; none while a
// header is not complete. With errStartTLS, in.pre holds what was read.
func (c *Conn) sniff(data []byte) ([]byte, error) {
	if len(c.in.pre) > 0 {
		c.in.pre = append(c.in.pre, data...)
		data = c.in.pre
	}
	if !c.in.proxied && (data[0] == firstProxyV1 || data[0] == firstProxyV2) {
		n, src, err := parseProxy(data)
		if err != nil {
			return nil, &CloseError{Reason: ReasonProxyHeader, Err: err}
		}
		if n == 0 {
			if len(c.in.pre) == 0 {
				c.in.pre = append([]byte(nil), data...)
			}
			return nil, nil
		}
		c.in.proxied = true
		if src.IsValid() {
			c.remote.Store(&src)
		}
		data = data[n:]
		if len(data) == 0 {
			c.in.pre = nil
			return nil, nil
		}
	}
	mode := c.srv.cfg.TLS.Mode
	if data[0] == firstTLS && !c.encrypted.Load() {
		if mode == TLSDisabled || c.srv.tls == nil {
			return nil, &CloseError{Reason: ReasonTLSDisabled}
		}
		c.in.pre = append([]byte(nil), data...)
		return nil, errStartTLS
	}
	if mode == TLSEnforcing && !c.encrypted.Load() {
		return nil, &CloseError{Reason: ReasonTLSEnforced}
	}
	c.in.sniffed, c.in.pre = true, nil
	c.connected()
	return data, nil
}

// parseProxy reads a PROXY protocol header of version 1 or 2. n is its length,
// 0 while it is incomplete. src is not valid when the header names no address
// (UNKNOWN, LOCAL, a unix socket).
func parseProxy(b []byte) (n int, src netip.AddrPort, err error) {
	if b[0] == firstProxyV1 {
		return parseProxyV1(b)
	}
	if !bytes.HasPrefix(b, proxyV2[:min(len(b), len(proxyV2))]) {
		return 0, src, errProxyHeader
	}
	if len(b) < minProxyV2 {
		return 0, src, nil
	}
	verCmd, family, size := b[12], b[13], int(binary.BigEndian.Uint16(b[14:]))
	if verCmd>>4 != 2 || verCmd&0xf > 1 || size > maxProxyV2 {
		return 0, src, errProxyHeader
	}
	if len(b) < minProxyV2+size {
		return 0, src, nil
	}
	n = minProxyV2 + size
	p := b[minProxyV2:n]
	switch {
	case verCmd&0xf == 0: // LOCAL: a health check of the proxy itself
	case family == 0x11 && size >= 12:
		addr, _ := netip.AddrFromSlice(p[:4])
		src = netip.AddrPortFrom(addr, binary.BigEndian.Uint16(p[8:]))
	case family == 0x21 && size >= 36:
		addr, _ := netip.AddrFromSlice(p[:16])
		src = netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(p[32:]))
	case family == 0x11 || family == 0x21:
		return 0, src, errProxyHeader
	}
	return n, src, nil
}

func parseProxyV1(b []byte) (n int, src netip.AddrPort, err error) {
	if !bytes.HasPrefix(b, proxyV1[:min(len(b), len(proxyV1))]) {
		return 0, src, errProxyHeader
	}
	end := bytes.Index(b[:min(len(b), maxProxyV1)], []byte("\r\n"))
	if end < 0 {
		if len(b) >= maxProxyV1 {
			return 0, src, errProxyHeader
		}
		return 0, src, nil
	}
	f := strings.Split(string(b[:end]), " ")
	if len(f) >= 2 && f[1] == "UNKNOWN" {
		return end + 2, src, nil
	}
	if len(f) != 6 || f[1] != "TCP4" && f[1] != "TCP6" {
		return 0, src, errProxyHeader
	}
	addr, err := netip.ParseAddr(f[2])
	if err != nil {
		return 0, src, errProxyHeader
	}
	port, err := strconv.ParseUint(f[4], 10, 16)
	if err != nil {
		return 0, src, errProxyHeader
	}
	return end + 2, netip.AddrPortFrom(addr.WithZone("").Unmap(), uint16(port)), nil
}
