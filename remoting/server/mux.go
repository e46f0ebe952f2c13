package server

import (
	"fmt"
	"unsafe"
)

// denseCodes is the range of request codes that are looked up in an array.
const denseCodes = 1024

// route says how the requests of one code are served.
type route struct {
	class  *Class // nil: only inline
	slot   int    // index of class in Mux.classes
	inline func(*Request) bool
	single func(*Request)
	batch  func([]*Request)
	try    func([]*Request) []*Request // batch on the loop
	key    unsafe.Pointer              // identity of batch: requests with the same key share a call
}

// Mux maps request codes to handlers. It is filled before the server that
// uses it starts and not changed afterwards; several servers may share it.
type Mux struct {
	dense   [denseCodes]*route
	sparse  map[int32]*route
	other   *route
	classes []*Class
}

// NewMux returns an empty Mux: every request is answered
// REQUEST_CODE_NOT_SUPPORTED.
func NewMux() *Mux { return &Mux{sparse: map[int32]*route{}} }

// Handle serves code in class c, one request a call of h. h, or whom it hands
// the request to, calls one of Reply, ReplyWith, ReplyBody or Done once.
// Registering a code twice panics, here and below.
func (m *Mux) Handle(code int32, c *Class, h func(*Request)) {
	m.add(code, m.inClass(c, &route{single: h}))
}

// HandleBatch serves code in class c with all requests that wait, merged over
// connections, up to MaxBatch a call. Codes registered with the same function
// value share batches. The slice is valid until h returns, the requests until
// each has been answered.
func (m *Mux) HandleBatch(code int32, c *Class, h func([]*Request)) {
	m.add(code, m.inClass(c, &route{batch: h, key: funcIdentity(h)}))
}

// HandleInline serves code on the event loop. h must not block.
func (m *Mux) HandleInline(code int32, h func(*Request)) {
	m.add(code, &route{inline: func(r *Request) bool { h(r); return true }})
}

// HandleInlineOr lets try answer on the event loop; when it returns false it
// has done nothing and h serves the request in class c.
func (m *Mux) HandleInlineOr(code int32, try func(*Request) bool, c *Class, h func(*Request)) {
	m.add(code, m.inClass(c, &route{inline: try, single: h}))
}

// HandleTryBatch is HandleBatch with a try that serves the requests on the event loop:
// a lone one at once, others together with what the other connections of the loop have
// sent meanwhile. What try returns it has not touched, and h serves that in class c; it
// may reuse the slice that it is given for that. While workers of c have requests, try
// is not called, so that what one connection sends stays in order if c has one worker.
// Codes with one h have one try.
func (m *Mux) HandleTryBatch(code int32, try func([]*Request) []*Request, c *Class, h func([]*Request)) {
	m.add(code, m.inClass(c, &route{try: try, batch: h, key: funcIdentity(h)}))
}

// Default serves every code without a handler.
func (m *Mux) Default(c *Class, h func(*Request)) {
	m.other = m.inClass(c, &route{single: h})
}

func (m *Mux) inClass(c *Class, r *route) *route {
	r.class = c
	for i, known := range m.classes {
		if known == c {
			r.slot = i
			return r
		}
	}
	r.slot = len(m.classes)
	m.classes = append(m.classes, c)
	return r
}

func (m *Mux) add(code int32, r *route) {
	if m.at(code) != nil {
		panic(fmt.Sprintf("request code %d has two handlers", code))
	}
	if code >= 0 && code < denseCodes {
		m.dense[code] = r
		return
	}
	m.sparse[code] = r
}

// at returns the route registered for code, nil when there is none.
func (m *Mux) at(code int32) *route {
	if code >= 0 && code < denseCodes {
		return m.dense[code]
	}
	return m.sparse[code]
}

// find returns the route that serves code, nil when none does.
func (m *Mux) find(code int32) *route {
	if r := m.at(code); r != nil {
		return r
	}
	return m.other
}

// funcIdentity returns the address of h's closure: equal for copies of one
// function value, different for two closures of the same text.
func funcIdentity(h func([]*Request)) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&h))
}
