package main

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// linkMode is how a link treats what it carries.
type linkMode int

const (
	whole linkMode = iota
	cut            // each connection ends after some bytes
	slow           // each piece is late
	hole           // nothing passes, nothing ends
)

// link carries the connections of a slave to the replication port of whoever is the master.
type link struct {
	addr string
	l    net.Listener
	work sync.WaitGroup
	mu   sync.Mutex
	to   string
	mode linkMode
	seen chan struct{} // closed when the mode changes
	open map[net.Conn]bool
	cuts int
	done bool
}

func newLink() (*link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &link{addr: l.Addr().String(), l: l, seen: make(chan struct{}), open: map[net.Conn]bool{}}
	k.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			k.work.Go(func() { k.carry(c) })
		}
	})
	return k, nil
}

// close ends the link and all that it carries.
func (k *link) close() {
	_ = k.l.Close()
	k.mu.Lock()
	k.done = true
	close(k.seen)
	k.seen = make(chan struct{})
	k.endAll()
	k.mu.Unlock()
	k.work.Wait()
}

func (k *link) endAll() {
	for c := range k.open {
		_ = c.Close()
	}
}

// lead changes where the link leads to; what is open ends.
func (k *link) lead(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to != to {
		k.to = to
		k.endAll()
	}
}

// set changes the mode. A link that is healed from a hole ends what was open, as a firewall that has forgotten it does.
func (k *link) set(m linkMode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mode == m {
		return
	}
	if k.mode == hole || m == cut {
		k.endAll()
	}
	k.mode = m
	close(k.seen)
	k.seen = make(chan struct{})
}

func (k *link) state() (mode linkMode, changed chan struct{}, to string, done bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mode, k.seen, k.to, k.done
}

func (k *link) keep(c net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open[c] = true
	return !k.done
}

func (k *link) drop(c net.Conn) {
	_ = c.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.open, c)
}

func (k *link) carry(c net.Conn) {
	defer k.drop(c)
	_, _, to, _ := k.state()
	if !k.keep(c) || to == "" {
		return
	}
	up, err := dialAs(c.RemoteAddr(), to)
	if err != nil {
		return
	}
	defer k.drop(up)
	if !k.keep(up) {
		return
	}
	k.work.Go(func() {
		k.pump(up, c)
		_ = c.Close()
		_ = up.Close()
	})
	k.pump(c, up)
	_ = up.Close()
}

// pump copies from one end to the other as the mode says.
func (k *link) pump(to, from net.Conn) {
	left := 1 + rand.Int64N(1<<uint(4+rand.IntN(14))) // from 1 byte to 128 KiB, small ones as often as large ones
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n == 0 && err != nil {
			return
		}
		data := buf[:n]
		for {
			mode, changed, _, done := k.state()
			if done {
				return
			}
			if mode == hole {
				<-changed
				continue
			}
			if mode == slow {
				time.Sleep(time.Duration(rand.Int64N(int64(40 * time.Millisecond))))
			}
			if mode == cut {
				if int64(len(data)) >= left {
					_, _ = to.Write(data[:left])
					k.mu.Lock()
					k.cuts++
					k.mu.Unlock()
					return
				}
				left -= int64(len(data))
			}
			break
		}
		if _, err := to.Write(data); err != nil {
			return
		}
	}
}
