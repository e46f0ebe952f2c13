// Package sdnotify tells a service manager what a process is doing: the
// sd_notify protocol of systemd, a datagram to the socket in NOTIFY_SOCKET.
package sdnotify

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
)

// Messages of the protocol that a server sends.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
)

// Status is the text that `systemctl status` shows.
func Status(text string) string { return "STATUS=" + strings.ReplaceAll(text, "\n", " ") }

// Send sends the messages in one datagram. Without a service manager
// (NOTIFY_SOCKET is not set) it does nothing and returns nil.
func Send(messages ...string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	if socket[0] == '@' { // an abstract socket: its name starts with a zero byte
		socket = "\x00" + socket[1:]
	}
	var d net.Dialer
	conn, err := d.DialContext(context.Background(), "unixgram", socket)
	if err != nil {
		return fmt.Errorf("cannot notify the service manager at %q: %w", os.Getenv("NOTIFY_SOCKET"), err)
	}
	defer func() { _ = conn.Close() }() // a datagram is sent or not; nothing is left to flush
	if _, err := conn.Write([]byte(strings.Join(messages, "\n"))); err != nil {
		return fmt.Errorf("cannot notify the service manager at %q: %w", os.Getenv("NOTIFY_SOCKET"), err)
	}
	return nil
}
