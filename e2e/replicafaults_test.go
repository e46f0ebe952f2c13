package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// cutLink carries connections to a port and cuts each after some bytes, as long as it is bad.
type cutLink struct {
	addr string
	mu   sync.Mutex
	bad  bool
	most int64 // bytes to a slave before a cut
	cuts int
}

func newCutLink(t *testing.T, to string) *cutLink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	link := &cutLink{addr: l.Addr().String(), bad: true, most: 60_000}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); link.heal(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { link.carry(c, to) })
		}
	})
	return link
}

func (l *cutLink) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bad = false
}

// spoil makes the link bad until n more connections were cut, each after at most so many bytes, and returns a wait for that.
func (l *cutLink) spoil(most int64, n int) func(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bad, l.most = true, most
	want := l.cuts + n
	return func(t *testing.T) {
		t.Helper()
		waitFor(t, 120*time.Second, fmt.Sprintf("%d connections that are cut", n), func() (bool, string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.cuts >= want, fmt.Sprint(l.cuts)
		})
		l.heal()
	}
}

func (l *cutLink) carry(c net.Conn, to string) {
	defer func() { _ = c.Close() }()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	go func() { _, _ = io.Copy(up, c); _ = up.Close() }()
	l.mu.Lock()
	bad, most := l.bad, l.most
	l.mu.Unlock()
	if bad {
		if n, _ := io.CopyN(c, up, 1+rand.Int64N(most)); n > 0 {
			l.mu.Lock()
			l.cuts++
			l.mu.Unlock()
		}
		return
	}
	_, _ = io.Copy(c, up)
}

// smallDisk is a directory on a volume of its own, of which all but a few MiB are taken until the returned function is called.
func smallDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=160m", "mqx-e2e", dir).CombinedOutput(); err != nil {
		t.Skipf("no volume can be mounted: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	ballast := filepath.Join(dir, "ballast")
	if out, err := exec.Command("fallocate", "-l", "150m", ballast).CombinedOutput(); err != nil {
		t.Skipf("no ballast: %v %s", err, out)
	}
	return func() {
		if err := os.Remove(ballast); err != nil {
			t.Error(err)
		}
	}
}

// A pair under load, one fault at a time: what was acknowledged is there afterwards, and both logs are the same bytes.
func TestReplicaFaults(t *testing.T) {
	if os.Getenv("MQX_E2E_ALL") != "1" || reference() {
		t.Skip("MQX_E2E_ALL=1 runs it")
	}
	pair := func(t *testing.T, name string, more ...string) (*replicaPair, *process) {
		p := newReplicaPair(t, name)
		p.a.extra = append(p.a.extra, "brokerRole=SYNC_MASTER", "inSyncReplicas=2", "slaveTimeout=1000")
		p.a.extra = append(p.a.extra, more...)
		a := mqxBroker(t, p.a)
		a.cleanup(t)
		p.createTopic(t, p.a)
		return p, a
	}
	finish := func(t *testing.T, p *replicaPair, l *groupLoad) {
		l.more(t, 50)
		l.end()
		p.standing(t, p.b, ",following,")
		p.same(t, p.a, p.b)
		l.read(t, p.ns, p.topic)
	}
	t.Run("stopped_slave", func(t *testing.T) {
		p, _ := pair(t, "stopped")
		b := mqxBroker(t, p.b)
		b.cleanup(t)
		p.standing(t, p.b, ",following,")
		l := startGroupLoad(t, p.dir, p.ns, p.topic)
		l.more(t, 50)
		if err := b.signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		waitFor(t, 60*time.Second, "a send that is not acknowledged", func() (bool, string) {
			text, _ := outputEven(mqxBinary, "produce", p.topic, "-n", p.ns, "--timeout", "20s", "-o", "csv", filepath.Join(p.dir, "load"))
			return strings.Contains(text, "FLUSH_SLAVE_TIMEOUT"), text
		})
		if err := b.signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		finish(t, p, l)
	})
	t.Run("cut_link", func(t *testing.T) {
		p, _ := pair(t, "cut")
		link := newCutLink(t, fmt.Sprintf("127.0.0.1:%d", p.a.port+1))
		p.b.extra = append(p.b.extra, "haMasterAddress="+link.addr)
		b := mqxBroker(t, p.b)
		b.cleanup(t)
		l := startGroupLoad(t, p.dir, p.ns, p.topic)
		l.more(t, 200)
		link.heal()
		finish(t, p, l)
	})
	t.Run("wiped_slave", func(t *testing.T) {
		p, _ := pair(t, "wiped")
		b := mqxBroker(t, p.b)
		l := startGroupLoad(t, p.dir, p.ns, p.topic)
		l.more(t, 100)
		b.kill()
		if err := os.RemoveAll(p.b.store); err != nil {
			t.Fatal(err)
		}
		mqxBroker(t, p.b).cleanup(t)
		finish(t, p, l)
	})
	t.Run("full_disk_at_the_slave", func(t *testing.T) {
		p, _ := pair(t, "fullslave")
		free := smallDisk(t, p.b.store)
		b := mqxBroker(t, p.b)
		b.cleanup(t)
		l := startGroupLoad(t, p.dir, p.ns, p.topic)
		waitFor(t, 90*time.Second, "a slave that says that its disk is full", func() (bool, string) {
			text, err := output(mqxBinary, "admin", "ha", "status", loopback(p.b.port), "-n", p.ns, "-o", "csv")
			return err == nil && !strings.Contains(text, ",following,") && (strings.Contains(text, "disk") || strings.Contains(text, "space")), text
		})
		free()
		finish(t, p, l)
	})
	t.Run("full_disk_at_the_master", func(t *testing.T) {
		p := newReplicaPair(t, "fullmaster")
		p.a.extra = append(p.a.extra, "brokerRole=SYNC_MASTER", "inSyncReplicas=2", "slaveTimeout=1000")
		free := smallDisk(t, p.a.store)
		mqxBroker(t, p.a).cleanup(t)
		mqxBroker(t, p.b).cleanup(t)
		one := writeFile(t, p.dir, "one", "one\n")
		waitFor(t, 90*time.Second, "a master that says that its disk is full", func() (bool, string) {
			text, err := exec.Command(mqxBinary, "produce", "PROMOTE", "-n", p.ns, "--timeout", "20s", one).CombinedOutput()
			return err != nil && (strings.Contains(string(text), "disk") || strings.Contains(string(text), "space")), string(text)
		})
		free()
		p.createTopic(t, p.a)
		l := startGroupLoad(t, p.dir, p.ns, p.topic)
		finish(t, p, l)
	})
}
