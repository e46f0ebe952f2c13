package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	groupName = "chaos"
	topic     = "HACHAOS"
	queues    = 4
	consumers = "hachaos" // the group whose offsets are committed
	replicas  = 3
)

// proc is a child in a process group of its own.
type proc struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func spawn(log string, env []string, command string, args ...string) (*proc, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &proc{cmd: exec.Command(command, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is seen by whoever needs it
		close(p.done)
	}()
	return p, nil
}

func (p *proc) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal goes to the child only while it is known to live.
func (p *proc) signal(s syscall.Signal) {
	if p.alive() {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

func (p *proc) kill() {
	if p != nil {
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}

// stop ends the process in order.
func (p *proc) stop(limit time.Duration) error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 && code != 143 { // 143: a JVM
			return fmt.Errorf("ended with %v", p.cmd.ProcessState)
		}
		return nil
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("did not end within %s of SIGTERM", limit)
	}
}

// node is a broker of the group.
type node struct {
	g        *group
	no       int
	dir      string
	port     int
	link     *link
	proc     *proc
	volume   bool // the store is a volume of its own
	starts   int
	apacheID int
}

func (n *node) addr() string         { return fmt.Sprintf("127.0.0.1:%d", n.port) }
func (n *node) store() string        { return filepath.Join(n.dir, "store") }
func (n *node) log() string          { return filepath.Join(n.dir, "broker.log") }
func (n *node) conf() string         { return filepath.Join(n.dir, "broker.conf") }
func (n *node) file(s string) string { return filepath.Join(n.store(), s) }

// group is a name server and three brokers.
type group struct {
	o       *options
	p       *plan
	ctx     context.Context //nolint:containedctx // of the round
	dir     string
	namesrv string
	ns      *proc
	nodes   [replicas]*node
	master  *node
	jars    string
}

func newGroup(ctx context.Context, o *options, p *plan, dir string) (*group, error) {
	g := &group{o: o, p: p, ctx: ctx, dir: dir}
	if o.apache {
		text, err := exec.CommandContext(ctx, filepath.Join("java", "fetch")).Output()
		if err != nil {
			return nil, fmt.Errorf("cannot fetch the jars of Apache (run from e2e): %w", err)
		}
		g.jars = strings.TrimSpace(string(text))
	}
	at := 21000 + rand.IntN(900)*10 // others may run at the same time
	ports, err := freePorts(at, replicas+1)
	if err != nil {
		return nil, err
	}
	g.namesrv = fmt.Sprintf("127.0.0.1:%d", ports[0])
	conf := filepath.Join(dir, "namesrv.conf")
	if err := os.WriteFile(conf, []byte("kvConfigPath="+filepath.Join(dir, "kv.json")+"\n"), 0o644); err != nil {
		return nil, err
	}
	if g.ns, err = spawn(filepath.Join(dir, "namesrv.log"), g.env(), o.mqx, "nameserver", "start", "-c", conf, "--listen", g.namesrv, "--metrics", "off"); err != nil {
		return nil, err
	}
	for i := range g.nodes {
		n := &node{g: g, no: i, dir: filepath.Join(dir, fmt.Sprintf("broker%d", i)), port: ports[i+1], apacheID: i}
		g.nodes[i] = n
		if err := os.MkdirAll(n.store(), 0o755); err != nil {
			return nil, err
		}
		if n.link, err = newLink(); err != nil {
			return nil, err
		}
		if err := n.configure(i == 0); err != nil {
			return nil, err
		}
	}
	g.lead(g.nodes[0])
	return g, nil
}

func (g *group) env() []string {
	return []string{"XDG_STATE_HOME=" + g.dir, "XDG_CONFIG_HOME=" + g.dir}
}

// lead lets all links lead to the master.
func (g *group) lead(m *node) {
	g.master = m
	for _, n := range g.nodes {
		n.link.lead(fmt.Sprintf("127.0.0.1:%d", m.port+1))
	}
}

func (g *group) slaves() (out []*node) {
	for _, n := range g.nodes {
		if n != g.master {
			out = append(out, n)
		}
	}
	return out
}

// configure writes the broker.conf that both makes read.
func (n *node) configure(master bool) error {
	role, id := "SLAVE", n.no
	if id == 0 {
		id = replicas // of the first master, once it is a slave
	}
	if master {
		role, id = "ASYNC_MASTER", 0
		if n.g.o.apache {
			role = "SYNC_MASTER"
		}
	}
	flush := "ASYNC_FLUSH"
	if n.g.p.sync {
		flush = "SYNC_FLUSH"
	}
	lines := append([]string{
		"brokerClusterName=Chaos", "brokerName=" + groupName, fmt.Sprintf("brokerId=%d", id), "brokerRole=" + role,
		"brokerIP1=127.0.0.1", "brokerIP2=127.0.0.1", fmt.Sprintf("listenPort=%d", n.port), "namesrvAddr=" + n.g.namesrv,
		"storePathRootDir=" + n.store(), "storePathCommitLog=" + n.file("commitlog"),
		"mappedFileSizeCommitLog=1048576", "mappedFileSizeConsumeQueue=6000", "maxHashSlotNum=1000", "maxIndexNum=4000", "maxMessageSize=524288",
		"flushConsumerOffsetInterval=1000", "registerNameServerPeriod=1000", "diskMaxUsedSpaceRatio=95", "cleanFileForciblyEnable=false",
		"waitTimeMillsInSendQueue=10000", "slaveTimeout=2000", "enableConsumeQueueExt=false", "flushDiskType=" + flush,
		"haMasterAddress=" + n.link.addr, "autoCreateTopicEnable=false",
	}, n.g.p.level.lines...)
	return os.WriteFile(n.conf(), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// start starts the broker and waits until it listens.
func (n *node) start() error {
	if n.proc.alive() {
		return nil
	}
	n.starts++
	var err error
	if n.g.o.apache {
		n.proc, err = spawn(n.log(), nil, "java", n.javaArgs()...)
	} else {
		n.proc, err = spawn(n.log(), n.g.env(), n.g.o.mqx, "broker", "start", "-c", n.conf(), "--metrics", "off")
	}
	if err != nil {
		return err
	}
	if err := n.g.wait(fmt.Sprintf("broker %d to listen", n.no), 90*time.Second, func() (bool, string) {
		c, err := net.DialTimeout("tcp", n.addr(), time.Second)
		if err != nil {
			if !n.proc.alive() {
				return false, "it has ended: " + tail(n.log(), 5)
			}
			return false, err.Error()
		}
		return c.Close() == nil, ""
	}); err != nil || !n.g.o.apache {
		return err
	}
	return n.tellMaster()
}

func (n *node) javaArgs() []string {
	return []string{
		"-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=512m",
		"--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
		"-Duser.home=" + n.dir, "-Drocketmq.home.dir=" + n.dir, "-Drocketmq.client.logRoot=" + n.dir, "-Drocketmq.log.root=" + n.dir,
		"-cp", filepath.Join(n.g.jars, "*"), "org.apache.rocketmq.broker.BrokerStartup", "-c", n.conf(),
	}
}

// close ends everything and takes volumes away.
func (g *group) close() error {
	var errs []error
	for _, n := range g.nodes {
		if n == nil {
			continue
		}
		n.proc.signal(syscall.SIGCONT)
		n.proc.kill()
		if n.link != nil {
			n.link.close()
		}
		if n.volume {
			if out, err := exec.Command("umount", n.store()).CombinedOutput(); err != nil {
				errs = append(errs, fmt.Errorf("cannot unmount %q: %w: %s", n.store(), err, out))
			}
		}
	}
	g.ns.kill()
	return errors.Join(errs...)
}

// wait polls until ok says yes.
func (g *group) wait(what string, limit time.Duration, ok func() (bool, string)) error {
	deadline := time.Now().Add(limit)
	for {
		yes, state := ok()
		if yes {
			return nil
		}
		if g.ctx.Err() != nil {
			return g.ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s in vain for %s; last seen: %s", limit, what, state)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// admin runs `mqx admin`.
func (g *group) admin(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(g.ctx, 150*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, g.o.mqx, append(append([]string{"admin"}, args...), "-n", g.namesrv)...)
	c.Env = append(os.Environ(), g.env()...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("mqx admin %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

// standing is how a broker stands in its group.
type standing struct {
	Role, State, Why, Peer string
	EndOffset              int64
	InSync, Slaves         int
	Degraded               bool
}

func (n *node) standing() (standing, error) {
	var s standing
	text, err := n.g.admin("ha", "status", n.addr(), "-o", "ndjson")
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(text) {
		var x standing
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			return s, fmt.Errorf("cannot read %q: %w", line, err)
		}
		if s.Role == "" || x.State != "refused" {
			s = x
		}
	}
	return s, nil
}

// interval is a time in which the master acknowledged with fewer copies than its level says.
type interval struct {
	From int64 `json:"fromOffset"`
	To   int64 `json:"toOffset"` // -1: it lasts
}

// intervals are those that a broker has recorded on its disk.
func (n *node) intervals() ([]interval, error) {
	b, err := os.ReadFile(n.file(filepath.Join("mqx", "replication.json")))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var x struct {
		Degraded []interval `json:"degraded"`
	}
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, fmt.Errorf("cannot read what broker %d has recorded: %w", n.no, err)
	}
	return x.Degraded, nil
}

func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], " | ")
}

// freePorts are ports whose neighbours are free as well, below the range of outgoing connections.
func freePorts(from, n int) (out []int, err error) {
	for port := from; port < 32000 && len(out) < n; port += 10 {
		free := true
		for p := port - 2; p <= port+2 && free; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			free = err == nil && l.Close() == nil
		}
		if free {
			out = append(out, port)
		}
	}
	if len(out) < n {
		return nil, errors.New("no free ports")
	}
	return out, nil
}
