package remoting

import (
	"testing"

	"mqx/internal/testkit"
)

// goldenRequest returns a recorded request of code in the serialization.
func goldenRequest(t testing.TB, file string, code int32) []byte {
	t.Helper()
	for _, w := range testkit.GoldenWire(t, file) {
		if w.Kind == testkit.WireFrameKind && w.RequestCode == nil && w.Code == code {
			return w.Raw
		}
	}
	t.Fatalf("no request %d in %s", code, file)
	return nil
}

// hotPaths are what a busy broker does for every request.
func hotPaths(t testing.TB) map[string]func() {
	paths := map[string]func(){}
	for _, s := range []string{"JSON", "ROCKETMQ"} {
		var send, pull Command
		var sendView SendMessageView
		var pullView PullMessageView
		sendFrame := goldenRequest(t, "java_producer_"+s, ReqSendMessageV2)
		pullFrame := goldenRequest(t, "java_push_clustering_"+s, ReqPullMessage)
		paths["decode send "+s] = func() {
			if err := send.Decode(sendFrame); err != nil {
				t.Fatal(err)
			}
			if err := sendView.Decode(send.Fields, true); err != nil {
				t.Fatal(err)
			}
		}
		paths["decode pull "+s] = func() {
			if err := pull.Decode(pullFrame); err != nil {
				t.Fatal(err)
			}
			if err := pullView.Decode(pull.Fields); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range []Serialize{SerializeJSON, SerializeROCKETMQ} {
		var c Command
		var out []byte
		req := &Command{Opaque: 4711}
		send := &SendMessageResponseHeader{MsgID: "7F00000200002A9F0000000000001234", QueueID: 3, QueueOffset: 1234567, TransactionID: "7F0000010000000000001234567890AB"}
		pull := &PullMessageResponseHeader{NextBeginOffset: 1234567, MinOffset: 1, MaxOffset: 7654321}
		paths["encode send response "+s.String()] = func() {
			c.InitResponse(req, RespSuccess, "")
			c.SetHeader(send)
			c.SetField("MSG_REGION", "DefaultRegion")
			c.SetField("TRACE_ON", "true")
			out, _ = c.AppendFrame(out[:0], s)
		}
		paths["encode pull response "+s.String()] = func() {
			c.InitResponse(req, RespSuccess, "")
			c.SetHeader(pull)
			out, _ = c.AppendFrameHeader(out[:0], s, 1<<20)
		}
	}
	return paths
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	for name, f := range hotPaths(t) {
		f() // grow the buffers
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkHotPaths(b *testing.B) {
	paths := hotPaths(b)
	for _, name := range []string{
		"decode send JSON", "decode send ROCKETMQ", "decode pull JSON", "decode pull ROCKETMQ",
		"encode send response JSON", "encode send response ROCKETMQ", "encode pull response JSON", "encode pull response ROCKETMQ",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				paths[name]()
			}
		})
	}
}
