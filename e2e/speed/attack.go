package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mqx/remoting"
)

// attackCommand is the first argument that makes this program an attacker.
const attackCommand = "attack"

// attackers work side by side, each on connections of its own.
const attackers = 8

// attacks are what a hostile peer does to a broker, over and over, until the context ends.
var attacks = map[string]func(ctx context.Context, addr string){
	"garbage":     func(ctx context.Context, addr string) { throw(ctx, addr, garbage()) },
	"oversize":    func(ctx context.Context, addr string) { throw(ctx, addr, frame(16<<20+1, 20, nil)) },
	"negative":    func(ctx context.Context, addr string) { throw(ctx, addr, frame(-5, -7, []byte("{}"))) },
	"fields":      func(ctx context.Context, addr string) { throw(ctx, addr, jsonFrame(manyFields())) },
	"deep":        func(ctx context.Context, addr string) { throw(ctx, addr, jsonFrame(deepJSON())) },
	"half":        halfFrames,
	"properties":  badProperties,
	"slow-reader": slowReader,
	"connections": manyConnections,
	"reconnect":   reconnect,
}

// attack is the program of the attacker: kind, address, how long.
func attack(args []string) error {
	if len(args) != 3 || attacks[args[0]] == nil {
		return errors.New("attack KIND ADDR DURATION")
	}
	d, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for range attackers {
		wg.Go(func() { attacks[args[0]](ctx, args[1]) })
	}
	wg.Wait()
	return nil
}

// attacker dials from another address than the load, as maxConnectionsPerIp counts by address; its ports are chosen by connection, or
// those of closed ones would be missing soon.
var attacker = net.Dialer{
	LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)},
	Control: func(_, _ string, c syscall.RawConn) (err error) {
		ended := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) })
		return errors.Join(ended, err)
	},
}

// dial connects and closes the connection at the end of the context, so that nothing waits longer.
func dial(ctx context.Context, addr string) net.Conn {
	c, err := attacker.DialContext(ctx, "tcp", addr)
	if err != nil {
		pause(ctx, time.Millisecond)
		return nil
	}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	return c
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// throw writes the bytes to a new connection, waits until the broker has closed it or says nothing, and begins anew.
func throw(ctx context.Context, addr string, b []byte) {
	for ctx.Err() == nil {
		c := dial(ctx, addr)
		if c == nil {
			continue
		}
		if _, err := c.Write(b); err == nil {
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, _ = io.Copy(io.Discard, c) // whatever it answers
		}
		_ = c.Close()
	}
}

func garbage() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 64<<10)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func frame(length, headerLength int32, rest []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(length))
	return append(binary.BigEndian.AppendUint32(b, uint32(headerLength)), rest...)
}

func jsonFrame(header []byte) []byte { return frame(int32(4+len(header)), int32(len(header)), header) }

func manyFields() []byte {
	var b bytes.Buffer
	b.WriteString(`{"code":310,"language":"JAVA","version":500,"opaque":1,"flag":0,"extFields":{`)
	for i := range 100_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"f%d":"v"`, i)
	}
	b.WriteString("}}")
	return b.Bytes()
}

func deepJSON() []byte {
	const depth = 200_000
	return []byte(`{"code":105,"x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}")
}

// halfFrames leaves frames of 1 MiB half sent.
func halfFrames(ctx context.Context, addr string) {
	b := frame(1<<20, 100, make([]byte, 512<<10))
	for ctx.Err() == nil {
		for range 32 {
			if c := dial(ctx, addr); c != nil {
				_, _ = c.Write(b) // a refusal is as good
			}
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// badProperties sends messages whose properties, queue and times are nonsense, several at a time.
func badProperties(ctx context.Context, addr string) {
	const messages = 8
	var b []byte
	for i := range messages {
		h := &remoting.SendMessageHeader{
			ProducerGroup: "attack", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: int32(-i),
			BornTimestamp: -1, Properties: strings.Repeat("\x01\x02=\x01", 500),
		}
		req := remoting.NewRequest(remoting.ReqSendMessageV2, h)
		req.Opaque, req.Body = int32(i), make([]byte, 100)
		b = append(b, encode(req)...)
	}
	for ctx.Err() == nil {
		c := dial(ctx, addr)
		if c == nil {
			continue
		}
		for err := error(nil); err == nil; {
			if _, err = c.Write(b); err == nil {
				err = readFrames(c, messages)
			}
		}
		_ = c.Close()
	}
}

// readFrames reads so many answers.
func readFrames(c net.Conn, n int) error {
	var head [4]byte
	for range n {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[:]))); err != nil {
			return err
		}
	}
	return nil
}

// slowReader asks for 1 GiB of messages and never reads.
func slowReader(ctx context.Context, addr string) {
	var b []byte
	for i := range 1 << 15 { // of 32 KiB each
		h := &remoting.PullMessageHeader{
			ConsumerGroup: "attack", Topic: pullTopic, QueueID: int32(i % queues), QueueOffset: int64(i), MaxMsgNums: 32, SysFlag: 4,
			Subscription: "*", ExpressionType: "TAG",
		}
		req := remoting.NewRequest(remoting.ReqPullMessage, h)
		req.Opaque = int32(i)
		b = append(b, encode(req)...)
	}
	for ctx.Err() == nil {
		if c := dial(ctx, addr); c != nil {
			_, _ = c.Write(b) // stops where the broker stops reading
			pause(ctx, 100*time.Millisecond)
			_ = c.Close()
		}
	}
}

// manyConnections opens connections as fast as it can and keeps them.
func manyConnections(ctx context.Context, addr string) {
	for n := 0; ctx.Err() == nil; n++ {
		dial(ctx, addr)
		if n >= 4000 { // of each attacker: past the descriptor limit of the broker where that is the usual 20,000
			pause(ctx, 50*time.Millisecond)
		}
	}
}

// reconnect says a few words and goes, again and again.
func reconnect(ctx context.Context, addr string) {
	b := encode(remoting.NewRequest(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: topic}))
	for ctx.Err() == nil {
		if c := dial(ctx, addr); c != nil {
			_, _ = c.Write(b) // whether it is answered is all the same
			_ = c.Close()
		}
	}
}

func encode(req *remoting.Command) []byte {
	b, err := req.AppendFrame(nil, remoting.SerializeJSON)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	return b
}
