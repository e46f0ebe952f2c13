package nameserver

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/remoting"
)

// lines is a log that a test reads while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// The level of the log and the limit of slow requests are set while the name server runs.
func TestLogIsSetWhileItRuns(t *testing.T) {
	level, out := &slog.LevelVar{}, &lines{}
	level.Set(slog.LevelInfo)
	s := startServer(t, func(c *Config) {
		c.Logger, c.LogLevel = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})), level
		c.ConfigStorePath = filepath.Join(t.TempDir(), "namesrv.properties")
	})
	p := dial(t, s)
	update := func(text string) *remoting.Command {
		req := remoting.NewRequest(remoting.ReqUpdateNamesrvConfig, nil)
		req.Body = []byte(text)
		return req
	}
	if resp := p.ok(update("logLevel=ERROR\nslowRequestMillis=0\n")); !strings.HasPrefix(resp.Remark, "active now: logLevel, slowRequestMillis;") {
		t.Errorf("remark %q", resp.Remark)
	}
	if got := level.Level(); got != slog.LevelError {
		t.Errorf("level %v", got)
	}
	p.refused(update("logLevel=LOUD\n"), remoting.RespSystemError, "must be DEBUG, INFO, WARN or ERROR")
	p.refused(update("slowRequestMillis=-1\n"), remoting.RespSystemError, "must be at least 0")
	p.ok(update("logLevel=DEBUG\n"))
	s.slow.SetAfter(1) // a nanosecond: everything is
	p.ok(remoting.NewRequest(remoting.ReqGetNamesrvConfig, nil))
	told := func() bool {
		text := out.text()
		return strings.Contains(text, `msg="slow request" request=GET_NAMESRV_CONFIG response=SUCCESS took_ms=`) && strings.Contains(text, "served_ms=")
	}
	for deadline := time.Now().Add(30 * time.Second); !told(); time.Sleep(10 * time.Millisecond) { // a request is told when its answer has gone
		if time.Now().After(deadline) {
			t.Fatalf("the log:\n%s", out.text())
		}
	}
}
