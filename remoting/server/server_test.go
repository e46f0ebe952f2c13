package server_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
)

const (
	codeInline = 30
	codeClass  = 31
	codeBatch  = 32
)

// gnet starts two goroutines of its ants pool when it is imported.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func echo(r *server.Request) {
	resp := remoting.Command{Fields: r.Fields, Body: r.Body}
	r.ReplyWith(&resp)
}

// startClass runs a class until the test ends.
func startClass(t testing.TB, cfg server.ClassConfig) *server.Class {
	t.Helper()
	c := server.NewClass(cfg)
	go c.Run(context.Background()) //nolint:errcheck // it runs once
	t.Cleanup(c.Close)
	return c
}

// start runs a server on a free loopback port until the test ends.
func start(t testing.TB, cfg server.Config, m *server.Mux) *server.Server {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	s, err := server.New(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newClient(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	c := client.New(cfg)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func echoMux(t testing.TB) *server.Mux {
	m := server.NewMux()
	m.HandleInline(codeInline, echo)
	m.Handle(codeClass, startClass(t, server.ClassConfig{Name: "single", Workers: 4, Queue: 10000}), echo)
	m.HandleBatch(codeBatch, startClass(t, server.ClassConfig{Name: "batch", Workers: 2, Queue: 10000}), func(rs []*server.Request) {
		for _, r := range rs {
			echo(r)
		}
	})
	return m
}

func TestEcho(t *testing.T) {
	s := start(t, server.Config{}, echoMux(t))
	c := newClient(t, client.Config{})
	for _, code := range []int32{codeInline, codeClass, codeBatch} {
		req := remoting.NewRequest(code, nil)
		req.Fields.Set("k", "v")
		req.Body = []byte("hello")
		resp, err := c.Call(t.Context(), s.Addr().String(), req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Code != 0 || string(resp.Body) != "hello" || resp.Fields.String("k") != "v" || !resp.IsResponse() {
			t.Errorf("code %d answered %+v", code, resp)
		}
	}
	resp, err := c.Call(t.Context(), s.Addr().String(), remoting.NewRequest(9999, nil))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Code != remoting.RespRequestCodeNotSupported || resp.Remark != " request type 9999 not supported" {
		t.Errorf("unknown code answered %+v", resp)
	}
}
