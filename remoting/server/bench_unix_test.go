//go:build unix

package server_test

import (
	"bufio"
	"net"
	"syscall"
	"testing"
	"time"

	"mqx/remoting"
)

// cpuTime returns what the process has used so far. Under a load generator in
// the same process it is the cost of both sides.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU reports the CPU time an operation since start.
func reportCPU(b *testing.B, start time.Duration) {
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
}

// BenchmarkReferenceNet is what the echo benchmarks are to be compared with, in
// one run: a goroutine a connection, buffered reads, one write when the buffer
// has been read empty; it parses nothing and only copies frames.
func BenchmarkReferenceNet(b *testing.B) {
	for _, shape := range benchShapes {
		b.Run(shapeName(shape, "net"), func(b *testing.B) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer ln.Close()
			go func() {
				for {
					nc, err := ln.Accept()
					if err != nil {
						return
					}
					go plainEcho(nc)
				}
			}()
			b.ResetTimer()
			cpu := cpuTime()
			rawLoad(b, ln.Addr().String(), shape[0], shape[1], codeInline)
			reportCPU(b, cpu)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
		})
	}
}

func plainEcho(nc net.Conn) {
	defer nc.Close()
	r, w := bufio.NewReaderSize(nc, 256<<10), bufio.NewWriterSize(nc, 256<<10)
	for {
		head, err := r.Peek(4)
		if err != nil {
			return
		}
		n, _, _ := remoting.FrameLen(head)
		frame, err := r.Peek(n)
		if err != nil {
			return
		}
		_, _ = w.Write(frame)
		_, _ = r.Discard(n)
		if r.Buffered() == 0 {
			_ = w.Flush()
		}
	}
}
