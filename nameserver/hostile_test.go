package nameserver

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/client"
)

// panicLog notes the panics that are logged.
type panicLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *panicLog) Enabled(_ context.Context, v slog.Level) bool { return v >= slog.LevelError }
func (l *panicLog) WithAttrs([]slog.Attr) slog.Handler           { return l }
func (l *panicLog) WithGroup(string) slog.Handler                { return l }

func (l *panicLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "panic" || a.Key == "stack" {
			l.mu.Lock()
			l.lines = append(l.lines, fmt.Sprintf("%s %s=%.2000s", r.Message, a.Key, a.Value))
			l.mu.Unlock()
		}
		return true
	})
	return nil
}

type hostileField struct {
	name             string
	required, number bool
}

func hostileFields(t reflect.Type) []hostileField {
	var out []hostileField
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("rmq")
		if !ok {
			out = append(out, hostileFields(f.Type)...)
			continue
		}
		names, opts, _ := strings.Cut(tag, ",")
		name, _, _ := strings.Cut(names, "|")
		text := f.Type.String()
		out = append(out, hostileField{name: name, required: opts == "required", number: strings.Contains(text, "int")})
	}
	return out
}

var (
	hostileNumbers = []string{"x", "", "-1", "2147483648", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "1e3", "0x10"}
	hostileTexts   = []string{"", "nope", strings.Repeat("n", 100_000), "\x00\x01", "../../etc/passwd", "\xff\xfe", ":", "[::1]:1", "a;b", "a\nb"}
	hostileBodies  = []string{
		"", "\x00", "garbage", "{", "[]", "null", "{}", `"x"`, strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), "\x78\x9c\xff\xff",
		"a=b\n\xff\\u12", "{null:null}", `{"filterServerList":{},"topicConfigSerializeWrapper":[]}`, `{"topicConfigSerializeWrapper":{"topicConfigTable":{"":null}}}`,
		`{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"topicName":"","readQueueNums":-1,"writeQueueNums":2147483647,"perm":-5}},"dataVersion":null}}`,
		`{"topicConfigSerializeWrapper":{"topicConfigTable":null,"topicQueueMappingInfoMap":{"T":{"currIdMap":{"x":"y"}}}}}`,
		`{"counter":-9223372036854775808,"stateVersion":1e400}`, `{"queueDatas":[null,{"brokerName":null,"perm":-1}],"brokerDatas":[{}]}`,
		"listenPort=-1\n", "scanNotActiveBrokerInterval=0\n", "scanNotActiveBrokerInterval=-5\n", "configBlackList=x\n",
	}
)

func hostileRequest(code int32, fields []hostileField, name, value, body string) *remoting.Command {
	req := remoting.NewRequest(code, nil)
	for _, f := range fields {
		v := "x"
		switch {
		case f.name == name:
			v = value
		case f.number:
			v = "0"
		case f.name == "topic":
			v = "T"
		}
		req.Fields.Set(f.name, v)
	}
	if body != "" {
		req.Body = []byte(body)
	}
	return req
}

// A peer that sends each request with missing, wrong and huge fields and bodies
// gets an answer to each; nothing panics, and routes are served afterwards.
func TestHostileRequests(t *testing.T) {
	log := &panicLog{}
	s := startServer(t, func(c *Config) { c.Logger = slog.New(log) })
	addr := s.Addr().String()
	lost := make(chan error, 16)
	c := client.New(client.Config{RequestTimeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler), OnClose: func(_ string, err error) {
		select {
		case lost <- err:
		default:
		}
	}})
	t.Cleanup(func() { _ = c.Close() })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	total := 0
	for _, sv := range services {
		total += sweepCode(t, c, addr, sv.code)
		if len(lost) > 0 {
			t.Fatalf("%s: the connection was lost: %v", remoting.RequestName(sv.code), <-lost)
		}
		for _, line := range log.lines {
			t.Errorf("%s: %s", remoting.RequestName(sv.code), line)
		}
		log.lines = nil
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d requests left %d bytes behind", total, grown)
	}
	p := dial(t, s)
	p.ok(registerRequest(t, 0, "m:1", 1, "still", "here"))
	p.ok(route("still"))
	t.Logf("%d hostile requests", total)
}

func sweepCode(t *testing.T, c *client.Client, addr string, code int32) (sent int) {
	t.Helper()
	var fields []hostileField
	if def, ok := remoting.Lookup(code); ok && def.Request != nil {
		fields = hostileFields(def.Request)
	}
	window := make(chan struct{}, 64)
	var wg sync.WaitGroup
	send := func(req *remoting.Command, what string, mustFail bool) {
		sent++
		window <- struct{}{}
		wg.Add(1)
		err := c.Go(addr, req, 20*time.Second, func(resp *remoting.Command, err error) {
			defer func() { <-window; wg.Done() }()
			switch {
			case err != nil:
				t.Errorf("%s, %s: %v", remoting.RequestName(code), what, err)
			case mustFail && (resp.Code == remoting.RespSuccess || resp.Remark == ""):
				t.Errorf("%s, %s: code %d, remark %q", remoting.RequestName(code), what, resp.Code, resp.Remark)
			}
		})
		if err != nil {
			t.Errorf("%s, %s: %v", remoting.RequestName(code), what, err)
			<-window
			wg.Done()
		}
	}
	required := false
	for _, f := range fields {
		required = required || f.required
		values := hostileTexts
		if f.number {
			values = hostileNumbers
		}
		for _, v := range values {
			send(hostileRequest(code, fields, f.name, v, ""), fmt.Sprintf("%s=%.40q", f.name, v), f.number && (v == "x" || v == "0x10"))
		}
	}
	send(remoting.NewRequest(code, nil), "an empty header", required)
	for _, body := range hostileBodies {
		for _, version := range []int32{0, 1, 100, remoting.Version} {
			req := hostileRequest(code, fields, "", "", body)
			req.Version = version
			send(req, fmt.Sprintf("version %d, body %.120q", version, body), false)
		}
	}
	wg.Wait()
	return sent
}
