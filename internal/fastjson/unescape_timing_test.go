package fastjson

import (
	"bytes"
	"testing"
)

func BenchmarkAppendUnescaped(b *testing.B) {
	raw := []byte(`KEYS\u00014711\u0002UNIQ_KEY\u0001AC1200020001000000000000000000AB\u0002CLUSTER\u0001DefaultCluster\u0002WAIT\u0001true\u0002TAGS\u0001TagA\u0002TRACE_ON\u0001true\u0002MSG_REGION\u0001DefaultRegion\u0002`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	dst := make([]byte, 0, 1024)
	for b.Loop() {
		dst, _ = AppendUnescaped(dst[:0], raw)
	}
}

// BenchmarkAppendUnescapedDense is of what hostile peers send: hardly anything but escapes.
func BenchmarkAppendUnescapedDense(b *testing.B) {
	raw := bytes.Repeat([]byte(`\u0001\u0002=\u0001`), 500)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	dst := make([]byte, 0, len(raw))
	for b.Loop() {
		dst, _ = AppendUnescaped(dst[:0], raw)
	}
}
