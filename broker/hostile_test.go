package broker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/client"
)

// errorLog notes what is logged as an error.
type errorLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *errorLog) Enabled(_ context.Context, v slog.Level) bool { return v >= slog.LevelError }
func (l *errorLog) WithAttrs([]slog.Attr) slog.Handler           { return l }
func (l *errorLog) WithGroup(string) slog.Handler                { return l }

func (l *errorLog) Handle(_ context.Context, r slog.Record) error {
	var w strings.Builder
	w.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&w, " %s=%v", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, w.String())
	return nil
}

func (l *errorLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.lines
	l.lines = nil
	return out
}

// hostileField is a field of a request header.
type hostileField struct {
	name             string
	required, number bool
}

// headerFieldsOf lists the fields of a request's header, by the names that the
// request uses on the wire.
func headerFieldsOf(code int32) []hostileField {
	def, ok := remoting.Lookup(code)
	if !ok || def.Request == nil {
		return nil
	}
	var out []hostileField
	short := map[string]string{}
	if remoting.ShortSendNames(code) {
		for i, n := range strings.Fields("producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag properties reconsumeTimes unitMode maxReconsumeTimes batch bname") {
			short[n] = string(rune('a' + i))
		}
	}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, ok := f.Tag.Lookup("rmq")
			if !ok {
				walk(f.Type)
				continue
			}
			names, opts, _ := strings.Cut(tag, ",")
			name, _, _ := strings.Cut(names, "|")
			h := hostileField{name: name, required: opts == "required"}
			if s, ok := short[name]; ok {
				h.name = s
			}
			switch f.Type {
			case reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[remoting.Opt[int32]](), reflect.TypeFor[remoting.Opt[int64]]():
				h.number = true
			}
			out = append(out, h)
		}
	}
	walk(def.Request)
	return out
}

// goodValue is a value that makes sense for a field.
func goodValue(f hostileField) string {
	switch f.name {
	case "topic", "b":
		return "T"
	case "consumerGroup", "group", "producerGroup", "groupName", "srcGroup", "a":
		return "G"
	case "defaultTopic", "c":
		return "TBW102"
	case "topicFilterType":
		return "SINGLE_TAG"
	case "perm":
		return "6"
	case "readQueueNums", "writeQueueNums", "d":
		return "4"
	case "i", "properties", "attributes", "lo", "nsd", "oway":
		return ""
	}
	if f.name == "commitOrRollback" {
		return "8" // 0 gets no answer
	}
	if f.number {
		return "0"
	}
	return "x"
}

var (
	badNumbers = []string{
		"x", "", "-1", "1", "-2147483648", "2147483647", "2147483648", "9223372036854775807", "-9223372036854775808",
		"99999999999999999999", "1e3", " 1", "0x10", "4294967296",
	}
	badTexts = []string{
		"", "nope", strings.Repeat("n", 100_000), "\x00\x01\x02", "a@b", "../../../etc/passwd", "\xff\xfe", "%RETRY%", "%DLQ%G",
		"TBW102", "SCHEDULE_TOPIC_XXXX", "*", "true", "a\nb", "T;T;T", "+", "-=", "+a=b", "+message.type=",
	}
	badBodies = []string{
		"", "\x00", "garbage", "{", "[]", "null", "{}", `"x"`, "1", "{null:null}", `{"":{"":[{}]}}`, strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000),
		strings.Repeat("\x00\x00\x00\x10", 1000), "\x78\x9c\xff\xff\xff", "a=b\n\xff\\u12", strings.Repeat("{},", 1000), `[{"a":1},{"b":[]}]`,
	}
	badValues = []string{
		"null", "1", "-1", `"x"`, `""`, "[]", "{}", "[null]", `{"":null}`, `{"":""}`, "[[]]", "[{}]", "true", "1e400", "9223372036854775808",
		`[{"":""}]`, `{"a":{"b":{}}}`, `"\u0001"`, `[{"topic":"T","queueId":-1,"brokerName":"b"}]`, `[{"topicName":"T","attributes":{"":"x"}}]`,
		`[{"groupName":"G","attributes":{"":"x"}}]`, `{"":"x"}`, `{"+":"x","-":""}`,
	}
)

// hostileBodies are bodies of a request: garbage, and its JSON with each
// member replaced by everything.
func hostileBodies(code int32) []string {
	out := badBodies
	def, ok := remoting.Lookup(code)
	if !ok || def.RequestBody == nil {
		return out
	}
	return append(append([]string{}, out...), hostileMembers(def.RequestBody, 0, func(s string) string { return s })...)
}

func hostileMembers(t reflect.Type, depth int, wrap func(string) string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var out []string
	switch {
	case t.Kind() == reflect.Slice && depth < 4:
		return hostileMembers(t.Elem(), depth+1, func(s string) string { return wrap("[" + s + "]") })
	case t.Kind() == reflect.Map && depth < 4:
		return hostileMembers(t.Elem(), depth+1, func(s string) string { return wrap(`{"T":` + s + "}") })
	case t.Kind() != reflect.Struct || depth >= 4:
		return nil
	}
	// names that make the rest of the object count
	const base = `"clientID":"c","clientId":"c","groupName":"G","consumerGroup":"G","topic":"T","topicName":"T","messageModel":"CLUSTERING",`
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		member := func(v string) string { return wrap("{" + base + `"` + name + `":` + v + "}") }
		for _, v := range badValues {
			out = append(out, member(v))
		}
		out = append(out, hostileMembers(f.Type, depth+1, member)...)
	}
	return out
}

// request builds a request with good values but one.
func hostileRequest(code int32, fields []hostileField, name, value, body string) *remoting.Command {
	req := remoting.NewRequest(code, nil)
	for _, f := range fields {
		v := goodValue(f)
		if f.name == name {
			v = value
		} else if v == "" && !f.required {
			continue
		}
		req.Fields.Set(f.name, v)
	}
	if body != "" {
		req.Body = []byte(body)
	}
	return req
}

// A peer that sends each request with empty, missing, wrong and huge fields
// and bodies gets an answer to each; nothing panics, the connection and the
// broker go on, and no memory stays behind.
func TestHostileRequests(t *testing.T) {
	log := &errorLog{}
	cfg := testConfig(t.TempDir())
	cfg.Logger = slog.New(log)
	r := start(t, cfg)
	lost := make(chan error, 16)
	c := client.New(client.Config{RequestTimeout: 20 * time.Second, Logger: quiet, OnClose: func(_ string, err error) {
		select {
		case lost <- err:
		default:
		}
	}})
	t.Cleanup(func() { _ = c.Close() })
	prepare := func() {
		r.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: "G"}, nil)
		r.createTopic("T", 4)
		r.send("T", 0, prop("TAGS", "a", "KEYS", "k"), "hello")
		r.groups.FindOrCreate("G")
	}
	prepare()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	total := 0
	codes := slices.Collect(maps.Keys(refusedReasons))
	for i := range services {
		codes = append(codes, services[i].code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		total += sweepCode(t, c, r.addr, code)
		if len(lost) > 0 {
			t.Fatalf("%s: the connection was lost: %v", remoting.RequestName(code), <-lost)
		}
		for _, line := range log.take() {
			if strings.Contains(line, "panic") {
				t.Errorf("%s: %.3000s", remoting.RequestName(code), line)
			}
		}
		prepare()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d requests left %d bytes behind", total, grown)
	}
	t.Logf("%d hostile requests, heap %d to %d", total, before.HeapAlloc, after.HeapAlloc)
}

// sweepCode sends all hostile requests of one code, a window at a time, and
// waits for all answers.
func sweepCode(t *testing.T, c *client.Client, addr string, code int32) (sent int) {
	t.Helper()
	fields := headerFieldsOf(code)
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
		values := badTexts
		if f.number {
			values = badNumbers
		}
		for _, v := range values {
			send(hostileRequest(code, fields, f.name, v, "body"), fmt.Sprintf("%s=%.40q", f.name, v), f.number && (v == "x" || v == "0x10" || v == "99999999999999999999"))
		}
	}
	paged := code == remoting.ReqGetAllTopicConfig || code == remoting.ReqGetAllSubscriptionGroupConfig // older peers send no header
	send(remoting.NewRequest(code, nil), "an empty header", required && !paged)
	for _, body := range hostileBodies(code) {
		send(hostileRequest(code, fields, "", "", body), fmt.Sprintf("body %.120q", body), false)
	}
	wg.Wait()
	return sent
}
