package server

// Mux maps request codes to handlers. It is filled before the server that
// uses it starts and not changed afterwards; several servers may share it.
type Mux struct{}

// NewMux returns an empty Mux: every request is answered
// REQUEST_CODE_NOT_SUPPORTED.
func NewMux() *Mux { return &Mux{} }

// Handle serves code in class c, one request a call of h. h, or whom it hands
// the request to, calls one of Reply, ReplyWith, ReplyBody or Done once.
func (m *Mux) Handle(code int32, c *Class, h func(*Request)) {}

// HandleBatch serves code in class c with all requests that wait, merged over
// connections, up to MaxBatch a call. Codes registered with the same function
// value share batches. The slice is valid until h returns, the requests until
// each has been answered.
func (m *Mux) HandleBatch(code int32, c *Class, h func([]*Request)) {}

// HandleInline serves code on the event loop. h must not block.
func (m *Mux) HandleInline(code int32, h func(*Request)) {}

// HandleInlineOr lets try answer on the event loop; when it returns false it
// has done nothing and h serves the request in class c.
func (m *Mux) HandleInlineOr(code int32, try func(*Request) bool, c *Class, h func(*Request)) {}

// Default serves every code without a handler.
func (m *Mux) Default(c *Class, h func(*Request)) {}
