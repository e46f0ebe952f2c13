package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/internal/testkit"
	"mqx/remoting"
)

// relay passes requests to a server of mqx and its answers back, of which edit changes bytes without changing their number.
func relay(t *testing.T, at, to string, edit func(frame []byte)) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				s, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(s, c)
					_ = s.Close()
				}()
				frames(s, c, edit)
				_ = s.Close()
			}()
		}
	}()
}

// frames copies frame by frame until one side ends.
func frames(from io.Reader, to io.Writer, edit func(frame []byte)) {
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		edit(frame)
		if _, err := to.Write(append(head, frame...)); err != nil {
			return
		}
	}
}

var bootTime = regexp.MustCompile(`"bootTimestamp":"(\d{13})"`)

// anHourLate is a broker of another version whose clock is late.
func anHourLate(frame []byte) {
	if at := bytes.Index(frame, []byte(`"brokerVersionDesc":"V5_5_0"`)); at >= 0 {
		copy(frame[at:], `"brokerVersionDesc":"V5_4_0"`)
	}
	if m := bootTime.FindSubmatchIndex(frame); m != nil {
		if ms, err := strconv.ParseInt(string(frame[m[2]:m[3]]), 10, 64); err == nil {
			copy(frame[m[2]:m[3]], strconv.FormatInt(ms-time.Hour.Milliseconds(), 10))
		}
	}
}

// doctorBroken: brokers that cannot be reached, store or keep up, at one name server. The version and the clock of one
// are made by a relay before it: the machine has one clock, and mqx one version.
func doctorBroken(t *testing.T, p *provoked) {
	ns := freePort(t)
	mqxNameserver(t, ns).cleanup(t)
	addr := loopback(ns)
	busy := startBusy(t, addr)
	full := startFull(t, addr)
	mqxBrokerAt(t, "127.0.0.2", brokerSpec{name: "doctor-nowhere", port: freePort(t), namesrv: addr, store: filepath.Join(testDir(t, "nowhere"), "store")}) // and says 127.0.0.1
	replica := freePort(t)
	mqxBroker(t, brokerSpec{name: "doctor-full", port: replica, namesrv: addr, store: filepath.Join(testDir(t, "replica"), "store"), extra: []string{
		"brokerId=1", "brokerRole=SLAVE", "haMasterAddress=127.0.0.1:1",
	}}).cleanup(t)
	idle, err := net.Dial("tcp", busy.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	p.find(t, []string{mqxBinary, "doctor", "-n", addr, "--for", "3s"}, func() { busy.overload(); full.refused() },
		fault{"nameservers-few", "", "only 1"}, fault{"address-unreachable", "doctor-nowhere", "takes no connection"}, fault{"version-differs", clusterName, "V5_4_0 on doctor-busy"},
		fault{"clock-differs", "doctor-busy", "behind"}, fault{"ha-gap", "doctor-full", "1 replica is registered and 0 are connected"},
		fault{"disk-watermark", "doctor-full", "at 90 % messages are refused"}, fault{"disk-other-volume", "doctor-full", "the volume of the log is 9"},
		fault{"delay-stuck", "doctor-full", "level 18: 2 messages"}, fault{"rejected-appended", "doctor-full", "puts failed"},
		fault{"rejected-queued", "doctor-busy", "at the stage queued"}, fault{"rejected-locked", "doctor-busy", "at the stage locked"}, fault{"rejected-flushed", "doctor-busy", "at the stage flushed"},
		fault{"dispatch-behind", "doctor-busy", "of the log are not in the queues"}, fault{"idle-closed", "doctor-busy", "in the last hour"},
	)
	p.find(t, full.inside("doctor", "store", full.log), nil, fault{"store-disk", full.log, "at 90 %"})
	p.find(t, full.inside("doctor", "host", "--for", "0s", "--store", full.log), nil, fault{"disk-room", full.log, "at 90 %"})
}

// mqxBrokerAt is a broker that listens at an address that it does not advertise.
func mqxBrokerAt(t *testing.T, host string, b brokerSpec) {
	t.Helper()
	dir := testDir(t, b.name)
	at := fmt.Sprintf("%s:%d", host, b.port)
	p := start(t, b.name, dir, nil, mqxBinary, "broker", "start", "-c", b.conf(t, dir), "--listen", at)
	p.cleanup(t)
	waitPort(t, p, at)
}

// busyBroker is one whose limits are so small that it refuses what comes.
type busyBroker struct {
	t    *testing.T
	addr string
	big  []byte
}

func startBusy(t *testing.T, namesrv string) *busyBroker {
	t.Helper()
	port, store := freePort(t), filepath.Join(testDir(t, "busy"), "store")
	// What is in the way of the queues of a topic keeps all that comes behind from its queues.
	for _, dir := range []string{"consumequeue", "batchconsumequeue"} {
		if err := os.MkdirAll(filepath.Join(store, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(store, dir), "DOC_BIG", "no directory")
	}
	mqxBrokerAt(t, "127.0.0.2", brokerSpec{name: "doctor-busy", port: port, namesrv: namesrv, store: store, extra: []string{
		"flushDiskType=SYNC_FLUSH", "syncFlushTimeout=1", "osPageCacheBusyTimeOutMills=1", "sendThreadPoolQueueCapacity=1", "serverChannelMaxIdleTimeSeconds=2",
		"maxMessageSize=4194304", "mappedFileSizeCommitLog=16777216",
	}})
	b := &busyBroker{t: t, addr: fmt.Sprintf("127.0.0.2:%d", port), big: []byte(strings.Repeat("x", 4<<20-1024))}
	newRawPeer(t, b.addr).ok(remoting.ReqUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: "DOC_BIG", DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: "+queue.type=BatchCQ",
	}, nil)
	relay(t, loopback(port), b.addr, anHourLate)
	return b
}

// refused are the requests that were refused at a stage, as the broker says.
func (b *busyBroker) refused(stage string) string {
	resp := newRawPeer(b.t, b.addr).ok(remoting.ReqGetBrokerRuntimeInfo, nil, nil)
	m := regexp.MustCompile(`"mqxRefused_` + stage + `":"(\d+)"`).FindSubmatch(resp.Body)
	if m == nil {
		return "?"
	}
	return string(m[1])
}

// overload sends until it was refused at every stage. What is too big for the page cache to take in a millisecond holds
// the log, and what comes then finds it locked.
func (b *busyBroker) overload() {
	before := map[string]string{}
	stages := []string{"queued", "locked", "flushed"}
	for _, s := range stages {
		before[s] = b.refused(s)
	}
	waitFor(b.t, 60*time.Second, "refusals at every stage", func() (bool, string) {
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() { b.send(i < 2) })
		}
		wg.Wait()
		for _, s := range stages {
			if b.refused(s) == before[s] {
				return false, s
			}
		}
		return true, ""
	})
}

// send sends one big message, or many small ones at a time.
func (b *busyBroker) send(big bool) {
	p := newRawPeer(b.t, b.addr)
	n, body := 200, []byte("small")
	if big {
		n, body = 2, b.big
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			req := remoting.NewRequest(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
				ProducerGroup: "PG_raw", Topic: "DOC_BIG", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestamp: time.Now().UnixMilli(),
			})
			req.Body = body
			_, _ = p.Call(b.t.Context(), p.addr, req)
		})
	}
	wg.Wait()
}

// fullBroker is one whose log lies on a volume that is full, in a namespace of its own.
type fullBroker struct {
	t    *testing.T
	p    *process
	addr string
	log  string // the volume of the log
}

// startFull starts it on a store of Apache's in which delayed messages wait, which it has no room to deliver.
func startFull(t *testing.T, namesrv string) *fullBroker {
	t.Helper()
	golden, dir, port := testkit.GoldenStore(t, "delay_timer"), testDir(t, "full"), freePort(t)
	f := &fullBroker{t: t, addr: loopback(port), log: filepath.Join(dir, "log")}
	root := filepath.Join(dir, "root")
	for _, d := range []string{f.log, root} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"timerwheel", "timerlog", "rocksdbstore", "lock"} { // what waits in levels is enough
		if err := os.RemoveAll(filepath.Join(golden, name)); err != nil {
			t.Fatal(err)
		}
	}
	conf := brokerSpec{name: "doctor-full", port: port, namesrv: namesrv, store: root, extra: []string{
		"storePathCommitLog=" + filepath.Join(f.log, "commitlog"), "cleanFileForciblyEnable=false", "timerWheelEnable=false",
	}}.conf(t, dir)
	script := fmt.Sprintf("mount -t tmpfs -o size=64m tmpfs %[1]s && mount -t tmpfs -o size=64m tmpfs %[2]s && cp -a %[3]s/. %[2]s/ && mv %[2]s/commitlog %[1]s/ && "+
		"head -c 61m /dev/zero > %[1]s/filler && exec %[4]s broker start -c %[5]s", f.log, root, golden, mqxBinary, conf)
	f.p = start(t, "doctor-full", dir, nil, "unshare", append(namespaces("-r"), "sh", "-c", script)...)
	f.p.cleanup(t)
	waitPort(t, f.p, f.addr)
	return f
}

// namespaces are the flags of unshare and nsenter for mounts of one's own.
func namespaces(more ...string) []string {
	if os.Getuid() == 0 {
		return []string{"-m"}
	}
	return append([]string{"-m", "-U"}, more...)
}

// inside is a command of mqx that sees the volumes of the broker.
func (f *fullBroker) inside(args ...string) []string {
	enter := append([]string{"nsenter", "-t", strconv.Itoa(f.p.cmd.Process.Pid)}, namespaces("--preserve-credentials")...)
	return append(append(enter, mqxBinary), args...)
}

// refused sends what is not stored.
func (f *fullBroker) refused() {
	p := newRawPeer(f.t, f.addr)
	resp := p.call(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: "PG_raw", Topic: "DelayTopic", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestamp: time.Now().UnixMilli(),
	}, []byte("x"))
	if resp.Code == remoting.RespSuccess {
		f.t.Error("a broker whose disk is full has stored a message")
	}
}
