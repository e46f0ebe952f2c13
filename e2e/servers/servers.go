// Package servers starts name servers and brokers of mqx on this machine, for the programs
// that measure what is asked of them.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Set is a set of servers, their directory and the programs that are run against them. Its
// methods are for one goroutine.
type Set struct {
	// Dir has the stores and the state of every program; it goes with Close.
	Dir string
	// NameServers are the addresses of those started so far, as -n takes them.
	NameServers string

	mqx     string
	ctx     context.Context //nolint:containedctx // of the processes
	cancel  context.CancelFunc
	started []*exec.Cmd
}

// New makes an empty set; mqx is the binary of its servers.
func New(mqx string) (*Set, error) {
	mqx, err := filepath.Abs(mqx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mqx-servers-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Set{Dir: dir, mqx: mqx, ctx: ctx, cancel: cancel}, nil
}

// Close ends the servers and removes their directory.
func (s *Set) Close() error {
	s.cancel()
	for _, c := range s.started {
		_ = c.Wait() // ended by a signal
	}
	return os.RemoveAll(s.Dir)
}

// Command is a program whose state and contexts are those of the set. It ends with the set.
func (s *Set) Command(program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(s.ctx, program, args...)
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+s.Dir, "XDG_CONFIG_HOME="+s.Dir)
	return c
}

// Admin runs mqx admin and returns what it wrote.
func (s *Set) Admin(args ...string) (string, error) {
	text, err := s.Command(s.mqx, append(append([]string{"admin"}, args...), "-n", s.NameServers)...).Output()
	return string(text), err
}

// NameServer starts one more name server.
func (s *Set) NameServer() error {
	addr, err := FreePort()
	if err != nil {
		return err
	}
	base := filepath.Join(s.Dir, fmt.Sprintf("namesrv-%d", len(s.started)))
	if err := os.WriteFile(base+".conf", []byte("kvConfigPath="+base+".json\n"), 0o600); err != nil {
		return err
	}
	if s.NameServers != "" {
		s.NameServers += ";"
	}
	s.NameServers += addr
	return s.start("nameserver", "start", "-c", base+".conf", "--listen", addr, "--metrics", "off")
}

// Broker starts a broker that knows the name servers started before, with lines of its
// configuration, and returns its address. Its store is Store(file).
func (s *Set) Broker(file string, lines ...string) (addr string, err error) {
	if addr, err = FreePort(); err != nil {
		return "", err
	}
	conf := s.Store(file) + ".conf"
	text := "brokerIP1=127.0.0.1\nbrokerIP2=127.0.0.1\ndiskMaxUsedSpaceRatio=95\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return "", err
	}
	return addr, s.start("broker", "start", "-c", conf, "-n", s.NameServers, "--listen", addr, "--store", s.Store(file), "--metrics", "off")
}

// Apache is Broker with one of Apache, whose jars are in jars.
func (s *Set) Apache(jars, file string, lines ...string) (addr string, err error) {
	if addr, err = FreePort(); err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	conf, store := s.Store(file)+".conf", s.Store(file)
	text := "brokerIP1=127.0.0.1\nbrokerIP2=127.0.0.1\ndiskMaxUsedSpaceRatio=95\nwaitTimeMillsInSendQueue=10000\nlistenPort=" + port + "\nnamesrvAddr=" + s.NameServers +
		"\nstorePathRootDir=" + store + "\nstorePathCommitLog=" + filepath.Join(store, "commitlog") + "\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return "", err
	}
	home := s.Store(file + "-home")
	return addr, s.run("java", "-server", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxDirectMemorySize=2g",
		"--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
		"-Duser.home="+home, "-Drocketmq.home.dir="+home, "-Drocketmq.client.logRoot="+home, "-Drocketmq.log.root="+home,
		"-cp", filepath.Join(jars, "*"), "org.apache.rocketmq.broker.BrokerStartup", "-c", conf)
}

// Store is the directory of a broker's store.
func (s *Set) Store(file string) string { return filepath.Join(s.Dir, file) }

// Registered waits until n brokers are registered.
func (s *Set) Registered(n int) error {
	return Wait(fmt.Sprintf("%d brokers", n), func() bool {
		text, err := s.Admin("broker", "ls", "-o", "name")
		return err == nil && strings.Count(text, "\n") == n
	})
}

func (s *Set) start(args ...string) error { return s.run(s.mqx, args...) }

func (s *Set) run(program string, args ...string) error {
	c := s.Command(program, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	if err := c.Start(); err != nil {
		return err
	}
	s.started = append(s.started, c)
	return nil
}

// Wait asks ok every 50 ms for up to two minutes.
func Wait(what string, ok func() bool) error {
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("waited in vain for %s", what)
		}
	}
	return nil
}

// FreePort is an address of loopback whose ports one above and two below are free as well.
func FreePort() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		err = l.Close()
		for _, p := range []int{port - 2, port, port + 1} {
			l, listenErr := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err = errors.Join(err, listenErr); listenErr == nil {
				err = errors.Join(err, l.Close())
			}
		}
		if err == nil {
			return fmt.Sprintf("127.0.0.1:%d", port), nil
		}
	}
	return "", errors.New("no free ports")
}
