package remoting

import "fmt"

// ResponseError is an answer with another code than success.
type ResponseError struct {
	Code    int32
	Remark  string
	Request string // name of the request, "" when not known
	Addr    string // peer that answered, "" when not known
}

func (e *ResponseError) Error() string {
	s := "peer answered " + ResponseName(e.Code)
	if e.Request != "" {
		s = e.Request + ": " + s
	}
	if e.Addr != "" {
		s += " at " + e.Addr
	}
	if e.Remark != "" {
		s = fmt.Sprintf("%s: %s", s, e.Remark)
	}
	return s
}
