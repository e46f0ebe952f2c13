package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

func TestAddrMap(t *testing.T) {
	m, err := ParseAddrMap([]string{"172.17.0.3:10911=127.0.0.1:20911", "broker-b = 10.8.0.5", "[fd00::1]:9876=[::1]:9876", "fd00::2=::1"})
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"172.17.0.3:10911": "127.0.0.1:20911", "172.17.0.3:10909": "172.17.0.3:10909", "broker-b:1": "10.8.0.5:1",
		"[fd00::1]:9876": "[::1]:9876", "[fd00::2]:7": "[::1]:7", "nonsense": "nonsense",
	} {
		if got := m.Dialled(from); got != to {
			t.Errorf("%s is dialled as %s, want %s", from, got, to)
		}
	}
	if again, err := ParseAddrMap(m.Entries()); err != nil || !slices.Equal(again.Entries(), m.Entries()) {
		t.Errorf("entries come back as %v, %v", again, err)
	}
	for _, bad := range [][]string{{"x"}, {"a:1=b"}, {"a=b:1"}, {"a:1=b:2", "a:1=b:3"}, {"a:1=b:1", "b:1=c:1"}, {"a:0=b:1"}, {"=b"}, {"a="}, {"a b=c"}, {"a=b=c"}} {
		if m, err := ParseAddrMap(bad); err == nil {
			t.Errorf("%v is taken as %v", bad, m)
		}
	}
}

func TestMappedAddressIsDialled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		if c, err := l.Accept(); err == nil {
			_, _ = c.Read(make([]byte, 1)) // closed before that, the client would dial again
			_ = c.Close()
		}
	}()
	c := New(Config{Map: AddrMap{"192.0.2.1:10911": at}, ConnectTimeout: time.Minute, RequestTimeout: time.Minute})
	defer func() { _ = c.Close() }()
	_, err = c.Call(context.Background(), "192.0.2.1:10911", remoting.NewRequest(remoting.ReqGetBrokerRuntimeInfo, nil))
	<-accepted
	if _, ok := errors.AsType[*ClosedError](err); !ok {
		t.Errorf("got %v, want that the connection closed", err)
	}
	_ = l.Close()
	_, err = New(Config{Map: AddrMap{"192.0.2.1": "127.0.0.1"}, ConnectTimeout: time.Second}).Call(context.Background(), "192.0.2.1:1", remoting.NewRequest(28, nil))
	if e, ok := errors.AsType[*ConnectError](err); !ok || e.Addr != "192.0.2.1:1" || e.Dialled != "127.0.0.1:1" || !strings.Contains(err.Error(), "mapped to") {
		t.Errorf("got %#v", err)
	}
}
