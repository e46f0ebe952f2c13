//go:build unix

package sdnotify

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSend(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	if err := Send(Ready, Status("serving\nmessages")); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 256)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(buf[:n]), "READY=1\nSTATUS=serving messages"; got != want {
		t.Errorf("the manager got %q, want %q", got, want)
	}
}

func TestSendWithoutManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Send(Ready); err != nil {
		t.Errorf("without NOTIFY_SOCKET: %v", err)
	}
}

func TestSendToNobody(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nobody")
	t.Setenv("NOTIFY_SOCKET", socket)
	if err := Send(Stopping); err == nil || !strings.Contains(err.Error(), socket) {
		t.Errorf("no socket there: error %v, want one that names it", err)
	}
}
