package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"mqx/admin"
	"mqx/admin/move"
	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

func TestExitCodesOfErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Exit
		says string // of why and try
	}{
		"plain":           {errors.New("broken"), ExitFailed, ""},
		"usage":           {fmt.Errorf("wrapped: %w", usagef("bad flag")), ExitUsage, ""},
		"cannot connect":  {fmt.Errorf("send: %w", &remoteclient.ConnectError{Addr: "10.0.0.9:10911", Err: net.ErrClosed}), ExitConnect, "nothing answers at 10.0.0.9:10911"},
		"no answer":       {&remoteclient.TimeoutError{Addr: "a:1", Request: "SEND_MESSAGE"}, ExitConnect, ""},
		"deadline":        {context.DeadlineExceeded, ExitConnect, ""},
		"denied":          {&remoting.ResponseError{Code: remoting.RespNoPermission, Remark: "no"}, ExitDenied, ""},
		"no topic":        {&remoting.ResponseError{Code: remoting.RespTopicNotExist}, ExitNotFound, "mqx admin topic ls"},
		"no group":        {&remoting.ResponseError{Code: remoting.RespSubscriptionGroupNotExist}, ExitNotFound, "mqx admin group ls"},
		"not found":       {&admin.NotFoundError{Kind: "topic", Name: "ODRERS", Known: []string{"ORDERS", "OTHER"}}, ExitNotFound, "ORDERS"},
		"bad topic name":  {message.ValidateTopic("a b"), ExitUsage, ""},
		"another request": {&remoting.ResponseError{Code: remoting.RespSystemBusy}, ExitFailed, ""},
	} {
		f := asFailure(c.err)
		if f.Code != c.want {
			t.Errorf("%s: exit code %d, want %d", name, f.Code, c.want)
		}
		if text := f.Why + f.Try; c.says != "" && !strings.Contains(text, c.says) {
			t.Errorf("%s: why and try are %q, want %q in them", name, text, c.says)
		}
	}
}

func TestFailureIsOneLineEach(t *testing.T) {
	var b bytes.Buffer
	failf(ExitFailed, "first\nsecond\tthird").because("a\n b").try("mqx %s", "dev").print(&b, false)
	if got, want := b.String(), "error: first; second third\nwhy: a; b\ntry: mqx dev\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestExitTableIsComplete(t *testing.T) {
	seen := map[Exit]bool{}
	for _, m := range exitTable {
		if seen[m.Code] || m.Name == "" || m.Meaning == "" {
			t.Errorf("row %+v comes twice or says nothing", m)
		}
		seen[m.Code] = true
	}
	for _, code := range []Exit{0, 1, 2, 3, 4, 5, 6, 7, 8, 130} {
		if !seen[code] {
			t.Errorf("exit code %d has no row", code)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"admin", "bench", "broker", "consume", "produce", "nameserver", "version"}
	for word, want := range map[string]string{
		"prodce": "produce", "Consume": "consume", "borker": "broker", "vers": "version", "namesever": "nameserver",
		"adm": "admin", "xyzzy": "", "q": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "acb", 1}, {"abc", "", 3}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func nameServers(a *app, flag string) ([]string, string, error) {
	r, err := a.resolve(&targetFlags{namesrv: flag})
	if err != nil {
		return nil, "", err
	}
	return r.nameServers.value, r.nameServers.source, nil
}

func TestNameServersPrecedence(t *testing.T) {
	for _, c := range []struct {
		flag   string
		env    map[string]string
		want   string
		source string
	}{
		{"", nil, "127.0.0.1:9876", "the default"},
		{"", map[string]string{"NAMESRV_ADDR": "b:2"}, "b:2", "NAMESRV_ADDR"},
		{"", map[string]string{"NAMESRV_ADDR": "b:2", "MQX_NAMESRV": "c:3,d:4"}, "c:3 d:4", "MQX_NAMESRV"},
		{"e:5;f:6", map[string]string{"MQX_NAMESRV": "c:3"}, "e:5 f:6", "--namesrv"},
		{"[::1]:7", nil, "[::1]:7", "--namesrv"},
	} {
		none := noEnv(t)
		a := &app{env: func(k string) string { return cmp.Or(c.env[k], none(k)) }}
		addrs, source, err := nameServers(a, c.flag)
		if err != nil || strings.Join(addrs, " ") != c.want || source != c.source {
			t.Errorf("flag %q, env %v: %v from %s (%v), want %s from %s", c.flag, c.env, addrs, source, err, c.want, c.source)
		}
	}
	a := &app{env: noEnv(t)}
	if _, _, err := nameServers(a, "::;"); err == nil || asFailure(err).Code != ExitUsage {
		t.Errorf("bad name servers: %v", err)
	}
}

// noEnv is an environment without anything but an empty directory for contexts.
func noEnv(t *testing.T) func(string) string {
	dir := t.TempDir()
	return func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return dir
		}
		return ""
	}
}

func TestAgree(t *testing.T) {
	for _, c := range []struct {
		name   string
		s      safetyFlags
		asks   string // the name to be typed
		tty    bool
		answer string
		want   Exit
	}{
		{"yes", safetyFlags{yes: true}, "", false, "", ExitOK},
		{"no terminal", safetyFlags{}, "", false, "", ExitUsage},
		{"yes does not destroy", safetyFlags{yes: true}, "ORDERS", false, "", ExitUsage},
		{"confirmed", safetyFlags{confirm: "ORDERS"}, "ORDERS", false, "", ExitOK},
		{"another name", safetyFlags{confirm: "ORDER"}, "ORDERS", false, "", ExitUsage},
		{"asked, y", safetyFlags{}, "", true, "y\n", ExitOK},
		{"asked, nothing", safetyFlags{}, "", true, "\n", ExitUsage},
		{"asked, end", safetyFlags{}, "", true, "", ExitUsage},
		{"asked, name", safetyFlags{}, "ORDERS", true, "ORDERS\n", ExitOK},
		{"asked for the name, y", safetyFlags{}, "ORDERS", true, "y\n", ExitUsage},
	} {
		var errOut bytes.Buffer
		a := &app{env: noEnv(t), Streams: Streams{In: strings.NewReader(c.answer), Err: &errOut, InTTY: c.tty, ErrTTY: c.tty}}
		got := ExitOK
		if err := a.agree(&targetFlags{}, &c.s, act{name: "ORDERS", destructive: c.asks != ""}); err != nil {
			got = asFailure(err).Code
		}
		if got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, got, c.want)
		}
		if c.tty && c.asks != "" && !strings.Contains(errOut.String(), c.asks) {
			t.Errorf("%s: the question %q does not name what is destroyed", c.name, errOut.String())
		}
	}
	a := &app{env: noEnv(t), global: globalFlags{readOnly: true}}
	if err := a.agree(&targetFlags{}, &safetyFlags{yes: true}, act{name: "ORDERS"}); err == nil || asFailure(err).Code != ExitDenied {
		t.Errorf("--read-only: %v", err)
	}
}

// A web server on the port of a name server is no name server.
func TestForeignPeer(t *testing.T) {
	f := classify(&remoteclient.ClosedError{Addr: "127.0.0.1:80", Err: remoting.ErrFrameTooLarge})
	if f.Code != ExitConnect || f.Why != "what answers there does not speak RocketMQ's protocol" || f.Try == "" {
		t.Errorf("%+v", f)
	}
	f = classify(&remoteclient.ClosedError{Addr: "127.0.0.1:80", Err: io.EOF})
	if f.Code != ExitConnect || !strings.Contains(f.Why, "requires TLS") || !strings.HasPrefix(f.Try, "--tls") {
		t.Errorf("%+v", f)
	}
}

// A signal hides nothing that went wrong in the same moment. The test sets what a process has one of: it runs alone.
func TestInterruptedIsNoOtherError(t *testing.T) {
	lastSignal.Store(2)
	defer lastSignal.Store(0)
	for _, tt := range []struct {
		err  error
		want Exit
	}{
		{fmt.Errorf("read: %w", context.Canceled), ExitInterrupted},
		{fmt.Errorf("cannot write: %w", syscall.ENOSPC), ExitFailed},
		{&move.OwnedError{Plan: "p"}, ExitFailed},
	} {
		if got := asFailure(tt.err).Code; got != tt.want || interrupted(tt.err) != (tt.want == ExitInterrupted) {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.want)
		}
	}
}
