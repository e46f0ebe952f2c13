package remoting

// Opt is a header value that may be absent on the wire, where absence means
// something else than the zero value.
type Opt[T any] struct {
	Value T
	OK    bool // the field is there
}

// Some returns a value that is there.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, OK: true} }

// Or returns the value, or def when it is absent.
func (o Opt[T]) Or(def T) T {
	if o.OK {
		return o.Value
	}
	return def
}
