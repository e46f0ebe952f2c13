//go:build unix

package server_test

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
)

// benchRequest is about what a small request of a real client looks like.
func benchRequest(code int32) *remoting.Command {
	req := remoting.NewRequest(code, nil)
	req.Fields.Set("topic", "BenchmarkTopic")
	req.Fields.Set("consumerGroup", "BenchmarkGroup")
	req.Fields.SetInt("queueId", 7)
	req.Body = make([]byte, 128)
	return req
}

// rawLoad keeps depth requests under way on each connection, written and read
// with as few system calls as possible: it measures the server.
func rawLoad(b *testing.B, addr string, conns, depth int, code int32) {
	frame, err := benchRequest(code).AppendFrame(nil, remoting.SerializeJSON)
	if err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range conns {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			defer nc.Close()
			rawConn(b, nc, frame, depth, &left)
		})
	}
	wg.Wait()
}

func rawConn(b *testing.B, nc net.Conn, frame []byte, depth int, left *atomic.Int64) {
	var out []byte
	buf := make([]byte, 256<<10)
	have, want := 0, depth
	under := 0
	for {
		out = out[:0]
		for range want {
			if left.Add(-1) < 0 {
				break
			}
			out = append(out, frame...)
			under++
		}
		if len(out) > 0 {
			if _, err := nc.Write(out); err != nil {
				b.Error(err)
				return
			}
		}
		if under == 0 {
			return
		}
		n, err := nc.Read(buf[have:])
		if err != nil {
			b.Error(err)
			return
		}
		have += n
		want = 0
		pos := 0
		for {
			l, ok, _ := remoting.FrameLen(buf[pos:have])
			if !ok || pos+l > have {
				break
			}
			pos += l
			want++
		}
		under -= want
		have = copy(buf, buf[pos:have])
	}
}

var benchCodes = []struct {
	name string
	code int32
}{{"inline", codeInline}, {"single", codeClass}, {"batch", codeBatch}}

var benchShapes = [][2]int{{1, 1}, {16, 1}, {4, 16}, {16, 16}}

func shapeName(shape [2]int, how string) string {
	return fmt.Sprintf("conns=%d/depth=%d/%s", shape[0], shape[1], how)
}

// BenchmarkEchoRaw: the server under a load generator that costs little.
func BenchmarkEchoRaw(b *testing.B) {
	for _, shape := range benchShapes {
		for _, bc := range benchCodes {
			b.Run(shapeName(shape, bc.name), func(b *testing.B) {
				s := start(b, server.Config{Logger: quiet}, echoMux(b))
				b.ReportAllocs()
				b.ResetTimer()
				cpu := cpuTime()
				rawLoad(b, s.Addr().String(), shape[0], shape[1], bc.code)
				reportCPU(b, cpu)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
				st := s.Stats()
				b.ReportMetric(float64(st.Writes)/float64(b.N), "writes/op")
			})
		}
	}
}

// BenchmarkEchoClient: server and client of mqx, asynchronous requests.
func BenchmarkEchoClient(b *testing.B) {
	for _, shape := range [][2]int{{1, 1}, {4, 16}, {16, 16}} {
		for _, bc := range benchCodes {
			b.Run(shapeName(shape, bc.name), func(b *testing.B) {
				s := start(b, server.Config{Logger: quiet}, echoMux(b))
				b.ReportAllocs()
				b.ResetTimer()
				cpu := cpuTime()
				clientLoad(b, s.Addr().String(), shape[0], shape[1], bc.code)
				reportCPU(b, cpu)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
			})
		}
	}
}

func clientLoad(b *testing.B, addr string, conns, depth int, code int32) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range conns {
		c := newClient(b, client.Config{Logger: quiet})
		for range depth {
			wg.Add(1)
			req := benchRequest(code)
			var next func(*remoting.Command, error)
			next = func(_ *remoting.Command, err error) {
				if err != nil {
					b.Error(err)
				}
				if left.Add(-1) < 0 {
					wg.Done()
					return
				}
				if err := c.Go(addr, req, 0, next); err != nil {
					b.Error(err)
					wg.Done()
				}
			}
			next(nil, nil)
		}
	}
	wg.Wait()
}

// BenchmarkEchoCall: many goroutines that wait for their answers.
func BenchmarkEchoCall(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := start(b, server.Config{Logger: quiet}, echoMux(b))
			c := newClient(b, client.Config{Logger: quiet})
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime()
			var wg sync.WaitGroup
			for range callers {
				req := benchRequest(codeInline)
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := c.Call(b.Context(), s.Addr().String(), req); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			reportCPU(b, cpu)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
		})
	}
}

// BenchmarkReplyBody: what a pull of 32 messages of 1 KiB costs to send.
func BenchmarkReplyBody(b *testing.B) {
	body := make([]byte, 64<<10)
	m := server.NewMux()
	m.Handle(11, startClass(b, server.ClassConfig{Name: "pull", Workers: 4, Queue: 10000}), func(r *server.Request) {
		var parts [32][]byte
		for i := range parts {
			parts[i] = body[i<<11:][:1024]
		}
		var resp remoting.Command
		r.ReplyBody(&resp, parts[:], nil)
	})
	s := start(b, server.Config{}, m)
	b.ReportAllocs()
	b.SetBytes(32 << 10)
	b.ResetTimer()
	cpu := cpuTime()
	rawLoad(b, s.Addr().String(), 4, 2, 11)
	reportCPU(b, cpu)
}
