package nameserver

import (
	"net"
	"strings"
	"testing"

	"mqx/remoting"
)

// A name server tells whether it reaches the brokers that are registered with it, and tries no other address.
func TestProbeBroker(t *testing.T) {
	listening, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	up, down := listening.Addr().String(), closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	p := dial(t, startServer(t, nil))
	p.ok(registerRequest(t, 0, up, 1, "x", "y"))
	p.ok(registerRequest(t, 1, down, 1, "x", "y"))
	probe := func(addr string) *remoting.Command {
		return remoting.NewRequest(remoting.ReqProbeBroker, &remoting.ProbeBrokerHeader{BrokerAddr: addr})
	}
	if got := p.ok(probe(up)).Fields.String("error"); got != "" {
		t.Errorf("a broker that listens: %q", got)
	}
	if got := p.ok(probe(down)).Fields.String("error"); !strings.Contains(got, "refused") {
		t.Errorf("a broker that does not listen: %q", got)
	}
	p.refused(probe("127.0.0.1:1"), remoting.RespSystemError, "no broker is registered with that address")
	p.refused(remoting.NewRequest(remoting.ReqProbeBroker, nil), remoting.RespSystemError, "brokerAddr")
}
