package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Who is measured.
const (
	makeMQX    = "mqx"
	makeApache = "apache"
)

// peer is a name server and a broker of one make.
type peer struct {
	b       *bench
	make    string
	dir     string
	extra   []string // lines of broker.conf
	namesrv string
	broker  string

	nsProc, brProc *proc
	paused         bool
	warmed         time.Duration // load it has seen since it started
	filled         bool          // the topic of pulls has its messages
	pulled, popped bool          // they have been read
}

// proc is a child in a process group of its own.
type proc struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

func (p *proc) pid() int { return p.cmd.Process.Pid }

// signal goes to the child only while it is known to live: its number may belong to
// somebody else afterwards.
func (p *proc) signal(s syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.pid(), s)
	}
}

func (p *proc) kill() {
	if p == nil {
		return
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// newPeer makes directories and configuration; start starts it.
func (b *bench) newPeer(kind, name string, extra ...string) (*peer, error) {
	p := &peer{b: b, make: kind, dir: filepath.Join(b.dir, name+"-"+kind), extra: extra}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	at := 22000 + os.Getpid()%800*10
	ns, err := freePort(at)
	if err != nil {
		return nil, err
	}
	// Start the name server first: it keeps its port from the broker.
	p.namesrv = fmt.Sprintf("127.0.0.1:%d", ns)
	if err := p.startNameServer(ns); err != nil {
		return nil, err
	}
	b.peers = append(b.peers, p)
	br, err := freePort(ns + 5)
	if err != nil {
		return nil, err
	}
	p.broker = fmt.Sprintf("127.0.0.1:%d", br)
	if err := p.configure(br); err != nil {
		return nil, err
	}
	return p, p.startBroker()
}

func (p *peer) configure(port int) error {
	store := p.store()
	lines := append([]string{
		"brokerClusterName=Speed",
		"brokerName=speed",
		"brokerId=0",
		"brokerIP1=127.0.0.1",
		"brokerIP2=127.0.0.1",
		fmt.Sprintf("listenPort=%d", port),
		"namesrvAddr=" + p.namesrv,
		"storePathRootDir=" + store,
		"storePathCommitLog=" + filepath.Join(store, "commitlog"),
		"registerNameServerPeriod=10000",
		"diskMaxUsedSpaceRatio=95",
		"waitTimeMillsInSendQueue=10000",
	}, p.extra...)
	return os.WriteFile(p.file("broker.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func (p *peer) file(name string) string { return filepath.Join(p.dir, name) }
func (p *peer) store() string           { return p.file("store") }

func (p *peer) startNameServer(port int) error {
	conf := p.file("namesrv.conf")
	text := fmt.Sprintf("listenPort=%d\nbindAddress=127.0.0.1\nkvConfigPath=%s\n", port, p.file("kvConfig.json"))
	if p.make == makeMQX {
		text = "kvConfigPath=" + p.file("kvConfig.json") + "\n"
	}
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return err
	}
	var err error
	if p.make == makeMQX {
		p.nsProc, err = p.spawn("namesrv", p.b.mqx, "nameserver", "start", "-c", conf, "--listen", p.namesrv)
	} else {
		p.nsProc, err = p.spawn("namesrv", "java", p.java("512m", "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", conf)...)
	}
	if err != nil {
		return err
	}
	return waitPort(p.namesrv, time.Minute)
}

// java returns the arguments of a JVM. Heap and flags are those of Apache's scripts,
// but for the size.
func (p *peer) java(heap, class string, args ...string) []string {
	return append([]string{
		"-server", "-Xms" + heap, "-Xmx" + heap, "-XX:+UseG1GC", "-XX:G1HeapRegionSize=16m", "-XX:G1ReservePercent=25",
		"-XX:InitiatingHeapOccupancyPercent=30", "-XX:SoftRefLRUPolicyMSPerMB=0", "-XX:-OmitStackTraceInFastThrow",
		"-XX:+AlwaysPreTouch", "-XX:MaxDirectMemorySize=4g", "-XX:-UseLargePages",
		"--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
		"-Duser.home=" + p.dir, "-Drocketmq.home.dir=" + p.dir, "-Drocketmq.log.root=" + p.dir, "-Drocketmq.client.logRoot=" + p.dir,
		"-cp", p.b.classPath, class,
	}, args...)
}

func (p *peer) spawn(name, command string, args ...string) (*proc, error) {
	q := &proc{cmd: exec.Command(command, args...), done: make(chan struct{}), log: p.file(name + ".log")}
	log, err := os.OpenFile(q.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	q.cmd.Stdout, q.cmd.Stderr = log, log
	q.cmd.Env = append(os.Environ(), "ROCKETMQ_HOME="+p.dir)
	q.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := q.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	go func() {
		_ = q.cmd.Wait() // how it ended is seen by whoever needs it
		close(q.done)
	}()
	return q, nil
}

// launchBroker starts the broker and does not wait for it.
func (p *peer) launchBroker() (err error) {
	if p.make == makeMQX {
		p.brProc, err = p.spawn("broker", p.b.mqx, "broker", "start", "-c", p.file("broker.conf"))
	} else {
		p.brProc, err = p.spawn("broker", "java", p.java("2g", "org.apache.rocketmq.broker.BrokerStartup", "-c", p.file("broker.conf"))...)
	}
	p.paused, p.warmed = false, 0
	return err
}

func (p *peer) startBroker() error {
	if err := p.launchBroker(); err != nil {
		return err
	}
	if err := waitPort(p.broker, 2*time.Minute); err != nil {
		return err
	}
	return p.waitRegistered()
}

// stopBroker ends the broker in order and returns how long that took.
func (p *peer) stopBroker() (time.Duration, error) {
	p.resume()
	began := time.Now()
	p.brProc.signal(syscall.SIGTERM)
	select {
	case <-p.brProc.done:
		return time.Since(began), nil
	case <-time.After(time.Minute):
		p.brProc.kill()
		return 0, errors.New("the broker did not end within a minute of SIGTERM")
	}
}

// end kills what runs and removes the directory.
func (p *peer) end() {
	p.brProc.kill()
	p.nsProc.kill()
	_ = os.RemoveAll(p.dir) // the whole run's directory goes at the end
}

func (b *bench) endAll() {
	for _, p := range b.peers {
		p.end()
	}
	b.peers = nil
}

func (p *peer) pause() {
	if !p.paused {
		p.brProc.signal(syscall.SIGSTOP)
		p.paused = true
	}
}

func (p *peer) resume() {
	if p.paused {
		p.brProc.signal(syscall.SIGCONT)
		p.paused = false
	}
}

// tool runs a command of mqx against the name server and returns its JSON.
func (p *peer) tool(ctx context.Context, args ...string) (*document, error) {
	args = append(args, "-n", p.namesrv, "-o", "json")
	cmd := exec.CommandContext(ctx, p.b.mqx, args...)
	text, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("mqx %s: %w", strings.Join(args[:2], " "), err)
	}
	d := new(document)
	return d, json.Unmarshal(text, d)
}

// document is what mqx prints with -o json.
type document struct{ Items []map[string]any }

// waitRegistered waits until the name server knows the broker, which it may have
// forgotten while the broker was stopped.
func (p *peer) waitRegistered() error {
	for range 300 {
		d, err := p.tool(p.b.ctx, "admin", "topic", "ls", "--all")
		if err == nil && len(d.Items) > 0 {
			return nil
		}
		if p.b.ctx.Err() != nil {
			return p.b.ctx.Err()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the broker of %s did not register", p.make)
}

// createTopic creates a topic and waits for its route.
func (p *peer) createTopic(topic string) error {
	var err error
	for range 100 { // a JVM that has just started may be slow
		_, err = p.tool(p.b.ctx, "admin", "topic", "create", topic, "--queues", fmt.Sprint(queues), "--yes", "--timeout", "30s")
		if err == nil {
			_, err = p.tool(p.b.ctx, "admin", "topic", "get", topic)
		}
		if err == nil || p.b.ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// load runs mqx bench and returns its report, with the CPU seconds that a process of
// the peer used for 100,000 messages meanwhile.
func (p *peer) load(of *proc, args ...string) (sample, error) {
	before, err := cpuOf(of.pid())
	if err != nil {
		return nil, err
	}
	d, err := p.tool(p.b.ctx, slices.Concat([]string{"bench"}, args, []string{"--warmup", "0s"})...)
	if err != nil {
		return nil, err
	}
	time.Sleep(200 * time.Millisecond) // what was sent is dispatched, too
	after, err := cpuOf(of.pid())
	if err != nil {
		return nil, err
	}
	s := sample{}
	for name, v := range d.Items[0] {
		if n, ok := v.(float64); ok {
			s[name] = n
		}
	}
	s["cpu"] = (after - before).Seconds() / s["messages"] * 1e5
	return s, nil
}
