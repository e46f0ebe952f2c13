package broker

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"mqx/remoting"
)

// With one send worker, what one connection sends is stored in its order, whether a read of the server brings one
// message, which an event loop may store, or several.
func TestSendsOfOneConnectionKeepOrder(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.SendThreads = 1
	r := start(t, cfg)
	r.createTopic("T", 1)
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const sends = 2000
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := 0; n < sends; {
		var b []byte
		for range min(1+rnd.IntN(3), sends-n) {
			req := remoting.NewRequest(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, ""))
			req.Opaque, req.Body = int32(n), fmt.Appendf(nil, "%d", n)
			if b, err = req.AppendFrame(b, remoting.SerializeROCKETMQ); err != nil {
				t.Fatal(err)
			}
			n++
		}
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	var in []byte
	buf := make([]byte, 64<<10)
	for answered := 0; answered < sends; {
		n, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, buf[:n]...)
		for {
			n, whole, err := remoting.FrameLen(in)
			if err != nil {
				t.Fatal(err)
			}
			if !whole || len(in) < n {
				break
			}
			var resp remoting.Command
			if err := resp.Decode(in[:n]); err != nil || resp.Code != remoting.RespSuccess {
				t.Fatalf("%v: %s", err, resp.Remark)
			}
			if off, _, _ := resp.Fields.Int64("queueOffset"); off != int64(resp.Opaque) {
				t.Fatalf("message %d is at queue offset %d", resp.Opaque, off)
			}
			answered++
			in = in[n:]
		}
	}
}
