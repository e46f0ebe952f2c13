package fastjson

// MaxDepth is the deepest nesting of objects and arrays that is read.
const MaxDepth = 64

// Member is one entry of an Object. Key is a string, an int64 (a number
// without quotes) or an Object (an object as key).
type Member struct {
	Key   any
	Value any
}

// Object is a JSON object whose entries keep their order.
type Object []Member

// Unmarshal reads data into v, a non-nil pointer.
func Unmarshal(data []byte, v any) error { panic("not yet") }

// Marshal writes v in the loose dialect.
func Marshal(v any) ([]byte, error) { panic("not yet") }

// MarshalStandard writes v as standard JSON.
func MarshalStandard(v any) ([]byte, error) { panic("not yet") }

// MarshalPretty writes v in the form of the configuration files.
func MarshalPretty(v any) ([]byte, error) { panic("not yet") }

// Parse reads data into a tree of map[string]any, []any, string, int64,
// float64, bool and nil.
func Parse(data []byte) (any, error) { panic("not yet") }

// ParseOrdered is Parse with Object in place of map[string]any.
func ParseOrdered(data []byte) (any, error) { panic("not yet") }
