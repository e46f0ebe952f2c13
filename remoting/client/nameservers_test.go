package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
)

// who asks until the answer does not depend on luck and returns the answer.
func who(t *testing.T, ns *client.NameServers) string {
	t.Helper()
	resp, err := ns.Call(within(t, patience), request(codeWho, ""))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Remark
}

func TestNameServersFailOver(t *testing.T) {
	a, b := startNode(t, "a", "", server.Config{}), startNode(t, "b", "", server.Config{})
	c := newClient(t, client.Config{})
	ns := client.NewNameServers(c, []string{a.addr, nobody(t), b.addr})
	first := who(t, ns)
	for range 20 {
		if got := who(t, ns); got != first {
			t.Fatalf("%s answered after %s: it does not stick", got, first)
		}
	}
	current, other, name := a, b, "b"
	if first == "b" {
		current, other, name = b, a, "a"
	}
	if ns.Current() != current.addr {
		t.Errorf("current %s, want %s", ns.Current(), current.addr)
	}
	current.stop()
	if got := who(t, ns); got != name {
		t.Errorf("%q answered, want %s", got, name)
	}
	if ns.Current() != other.addr {
		t.Errorf("current %s, want %s", ns.Current(), other.addr)
	}
	other.stop()
	_, err := ns.Call(within(t, patience), request(codeWho, ""))
	if err == nil {
		t.Fatal("answered by nobody")
	}
	for _, addr := range ns.All() {
		if !strings.Contains(err.Error(), addr) {
			t.Errorf("the error does not name %s: %v", addr, err)
		}
	}
	var ce *client.ConnectError
	if !errors.As(err, &ce) {
		t.Errorf("error %v", err)
	}
}

// One that is stopped (it accepts, and answers nothing) costs its share of the
// time once.
func TestNameServersOneIsStopped(t *testing.T) {
	a := startNode(t, "a", "", server.Config{})
	c := newClient(t, client.Config{})
	dead := deaf(t)
	for range 6 {
		ns := client.NewNameServers(c, []string{dead, a.addr})
		begin := time.Now()
		resp, err := ns.Call(within(t, 2*time.Second), request(codeWho, ""))
		if err != nil || resp.Remark != "a" {
			t.Fatalf("%+v, %v", resp, err)
		}
		if d := time.Since(begin); d > 1500*time.Millisecond {
			t.Errorf("after %v", d)
		}
		begin = time.Now()
		who(t, ns)
		if d := time.Since(begin); d > 500*time.Millisecond {
			t.Errorf("the next after %v", d)
		}
	}
}

func TestNameServersBusy(t *testing.T) {
	a := startNode(t, "a", "", server.Config{})
	c := newClient(t, client.Config{})
	// The only one's answer is handed on as it is.
	resp, err := client.NewNameServers(c, []string{a.addr}).Call(within(t, patience), request(codeBusy, ""))
	if err != nil || resp.Code != remoting.RespSystemBusy {
		t.Errorf("%+v, %v", resp, err)
	}
	b := startNode(t, "b", "", server.Config{})
	resp, err = client.NewNameServers(c, []string{a.addr, b.addr}).Call(within(t, patience), request(codeBusy, ""))
	if err != nil || resp.Code != remoting.RespSystemBusy {
		t.Errorf("all are busy: %+v, %v", resp, err)
	}
}

func TestNameServersUpdate(t *testing.T) {
	a, b := startNode(t, "a", "", server.Config{}), startNode(t, "b", "", server.Config{})
	c := newClient(t, client.Config{})
	ns := client.NewNameServers(c, nil)
	if _, err := ns.Call(within(t, patience), request(codeWho, "")); err == nil {
		t.Error("an empty list has answered")
	}
	if ns.Current() != "" {
		t.Errorf("current %q", ns.Current())
	}
	ns.Update([]string{a.addr})
	if got := who(t, ns); got != "a" {
		t.Errorf("answered by %s", got)
	}
	ns.Update([]string{b.addr, a.addr})
	if got := who(t, ns); got != "a" {
		t.Errorf("%s answered although the one that worked is still there", got)
	}
	ns.Update([]string{b.addr})
	if got := who(t, ns); got != "b" || !slices.Equal(ns.All(), []string{b.addr}) {
		t.Errorf("answered by %s of %v", got, ns.All())
	}
	eventually(t, "the connection to the one that left closes", func() bool {
		return a.Stats().Connections[server.StateClosed] == 1
	})
}

// N090 (IPv6, zones) and N100 (commas).
func TestParseAddrs(t *testing.T) {
	for in, want := range map[string]string{
		"a:9876":                               "a:9876",
		"a:9876;b:9876":                        "a:9876 b:9876",
		"a:9876,b:9876":                        "a:9876 b:9876",
		" a:9876 ; b:9876,;":                   "a:9876 b:9876",
		"a:9876;a:9876":                        "a:9876",
		"127.0.0.1:09876":                      "127.0.0.1:9876",
		"[fd00::1]:9876":                       "[fd00::1]:9876",
		"[FD00:0:0::1]:9876":                   "[fd00::1]:9876",
		"[fe80::1%eth0]:9876":                  "[fe80::1]:9876",
		"[::ffff:10.0.0.1]:9876":               "10.0.0.1:9876",
		"broker-1.example.com:10911":           "broker-1.example.com:10911",
		"a_b:1;[::1]:2,10.1.2.3:65535;[::1]:2": "a_b:1 [::1]:2 10.1.2.3:65535",
	} {
		got, err := client.ParseAddrs(in)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	for in, hint := range map[string]string{
		"":                     "cannot find an address",
		" ; ,":                 "cannot find an address",
		"a":                    "port is missing",
		"10.0.0.1":             "port is missing",
		"fd00::1:9876":         "in brackets",
		"fd00::1":              "in brackets",
		"fe80::1%eth0:9876":    "in brackets",
		"[fd00::1]":            "port is missing",
		"a:":                   "1 to 65535",
		"a:0":                  "1 to 65535",
		"a:70000":              "1 to 65535",
		"a:x":                  "1 to 65535",
		":9876":                "host is missing",
		"http://a:9876":        "", // any error
		"a b:9876":             "character",
		"a:1;b":                "port is missing",
		"[not:an:address]:123": "character",
	} {
		got, err := client.ParseAddrs(in)
		if err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: %q, %v, want an error with %q", in, got, err, hint)
		}
	}
}

func FuzzParseAddrs(f *testing.F) {
	f.Add("a:9876;[fe80::1%eth0]:1,b:2")
	f.Fuzz(func(t *testing.T, s string) {
		addrs, err := client.ParseAddrs(s)
		if err != nil {
			return
		}
		again, err := client.ParseAddrs(strings.Join(addrs, ";"))
		if err != nil || !slices.Equal(again, addrs) {
			t.Errorf("%q becomes %q and then %q, %v", s, addrs, again, err)
		}
	})
}
