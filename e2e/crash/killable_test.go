package crash

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/client"
)

// killable is a broker that is killed and started again, and a client of it.
type killable struct {
	t      *testing.T
	dir    string
	conf   string
	addr   string
	broker *child
	point  string // at which it dies by itself, "" for none
	c      *client.Client
	deaths []time.Time
}

// newKillable writes the configuration: what all have, and the lines of settings.
func newKillable(t *testing.T, settings string, asked func(string, *remoting.Command) *remoting.Command) killable {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	l := killable{t: t, dir: dir, conf: filepath.Join(dir, "broker.conf"), addr: fmt.Sprintf("127.0.0.1:%d", port)}
	text := fmt.Sprintf("brokerClusterName=C\nbrokerName=b\nbrokerIP1=127.0.0.1\nbindAddress=127.0.0.1\nlistenPort=%d\nstorePathRootDir=%s\n"+
		"mappedFileSizeCommitLog=4194304\ndiskMaxUsedSpaceRatio=95\ncleanFileForciblyEnable=false\n", port, filepath.Join(dir, "store"))
	if err := os.WriteFile(l.conf, []byte(text+settings), 0o644); err != nil {
		t.Fatal(err)
	}
	l.c = client.New(client.Config{RequestTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler), OnRequest: asked})
	t.Cleanup(func() { _ = l.c.Close() })
	return l
}

// start starts the broker and waits until it serves, or has died at its point.
func (l *killable) start() {
	l.t.Helper()
	l.broker = startChild(l.t, l.dir, l.conf, l.point)
	select {
	case <-l.broker.ready:
	case <-l.broker.done:
		if l.point != "" && l.broker.killed() {
			return
		}
		l.t.Fatalf("the broker did not start:\n%s", tail(l.broker.log, 20))
	case <-time.After(startLimit):
		l.t.Fatal("the broker did not start in time")
	}
}

// call asks the broker; nil when there is no answer: it may have died.
func (l *killable) call(code int32, head any, body []byte) *remoting.Command {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req := remoting.NewRequest(code, head)
	req.Body = body
	resp, err := l.c.Call(ctx, l.addr, req)
	if err != nil {
		return nil
	}
	return resp
}
