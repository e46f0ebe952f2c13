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
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				paths[name]()
			}
		})
	}
}
