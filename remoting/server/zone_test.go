package server_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"mqx/remoting/server"
)

// A peer with a link-local address is served, and its zone is told. A system
// without such an address has nothing to test here: the transport of such a
// connection is the one that forBoth calls streams.
func TestLinkLocalPeer(t *testing.T) {
	m := server.NewMux()
	m.HandleInline(1, func(r *server.Request) { r.Reply(0, r.Conn().Remote().String()) })
	s := start(t, server.Config{Addr: ":0"}, m)
	_, port, _ := net.SplitHostPort(s.Addr().String())
	ifs, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, i := range ifs {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || !p.Addr().Is6() || !p.Addr().IsLinkLocalUnicast() || i.Flags&net.FlagUp == 0 {
				continue
			}
			tried++
			for range 3 {
				peer := dialAddr(t, net.JoinHostPort(p.Addr().WithZone(i.Name).String(), port))
				peer.send(request(1, 1, ""))
				if resp := peer.receive(); resp.Remark != peer.LocalAddr().String() || !strings.Contains(resp.Remark, "%"+i.Name) {
					t.Errorf("remote %q, want %q", resp.Remark, peer.LocalAddr())
				}
			}
		}
	}
	t.Logf("%d link-local addresses", tried)
}
