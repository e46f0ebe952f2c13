package fastjson

import "testing"

func BenchmarkAppendString(b *testing.B) {
	short, long := []byte("7F00000100002A9F0000000000000C3A"), []byte("transactionId of a message, with more text than that")
	dst := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendString(AppendString(AppendString(dst[:0], short), long), "queueId")
	}
}
