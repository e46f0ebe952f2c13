package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// lifeRows are rows that bring their own servers.
func (b *bench) lifeRows() []row {
	return []row{
		{
			id: "start", title: "broker, empty store: start, memory, idle CPU, stop", once: true, command: "SIGTERM; /proc",
			floors: []floor{
				under("startMs", 100), under("stopMs", 500), under("rssMiB", 60), under("nsRssMiB", 25), under("nsAnonMiB", 12), under("idleCPU", 0.3),
			},
			measure: b.life,
		},
		{
			id: "store-2GiB", title: "broker on a 2 GiB store: SIGKILL, start to first send; memory", once: true, command: "SIGKILL; /proc",
			floors: []floor{under("crashStartMs", 1000), under("anonMiB", 40)}, measure: b.largeStore,
		},
		{
			id: "topics-10000", title: "10,000 topics of 4 queues: create, write, restart", once: true, long: true,
			command: "UPDATE_AND_CREATE_TOPIC, 64 in flight; mqx bench produce over all; SIGTERM, start",
			floors:  []floor{atLeast("created", 1), under("restartMs", 3000)}, measure: b.manyTopics,
		},
		{
			id: "collide", title: "10,000 topics whose names have one hash code; ratio is with/without", once: true, long: true,
			command: "mqx bench produce over the topics", floors: []floor{under("p99Ratio", 1.2)}, measure: b.colliding,
		},
		{
			id: "cold", title: "16 in flight beside a consumer that reads 4 GiB no cache holds; ratio is with/without", long: true,
			command: "mqx bench produce --in-flight 16 beside mqx bench consume", floors: []floor{under("p99Ratio", 1.5)}, measure: b.cold,
		},
		{
			id: "example", title: "Apache's example.benchmark, producer with 64 threads and consumer, 1 KiB", long: true,
			command: "org.apache.rocketmq.example.benchmark.Producer and Consumer", floors: []floor{atMost("cpu", 1.0/2)}, measure: b.exampleBenchmark,
		},
		{
			id: "soak", title: "produce and consume at 50 MB/s, files of 64 MiB, deletion every minute", once: true, long: true,
			command: "producer and consumer of package client in one process",
			floors:  []floor{under("anonMiB", 150), under("lost", 1), under("p999Last", 1.5), under("anonLast", 1.2)}, measure: b.soak,
		},
		{
			id: "binary", title: "binary, stripped", once: true, command: "go build -trimpath -ldflags '-s -w'",
			floors: []floor{under("sizeMiB", 25)}, measure: b.binarySize,
		},
	}
}

// firstSend starts the broker and returns the time until a send is served, tried over
// and over from the beginning.
func (p *peer) firstSend() (time.Duration, error) {
	c := remoteclient.New(remoteclient.Config{ConnectTimeout: time.Second})
	defer c.Close()
	began := time.Now()
	if err := p.launchBroker(); err != nil {
		return 0, err
	}
	for time.Since(began) < 2*time.Minute {
		ctx, cancel := context.WithTimeout(p.b.ctx, time.Second)
		resp, err := c.Call(ctx, p.broker, sendRequest("TBW102_FIRST"))
		cancel()
		if err == nil && resp.Code == remoting.RespSuccess {
			return time.Since(began), nil
		}
		if p.b.ctx.Err() != nil {
			return 0, p.b.ctx.Err()
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 0, fmt.Errorf("the broker of %s served no send", p.make)
}

func sendRequest(topic string) *remoting.Command {
	h := &remoting.SendMessageHeader{
		ProducerGroup: "speed", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4,
		BornTimestamp: time.Now().UnixMilli(),
	}
	req := remoting.NewRequest(remoting.ReqSendMessageV2, h)
	req.Body = []byte("first")
	return req
}

// idleTime is how long the idle CPU is watched.
const idleTime = 60 * time.Second

func (b *bench) life(p *peer) (sample, error) {
	q, err := b.newPeer(p.make, "life")
	if err != nil {
		return nil, err
	}
	// The first start makes the store; what is measured starts again, as every
	// following one does.
	if _, err := q.stopBroker(); err != nil {
		return nil, err
	}
	s := sample{}
	took, err := q.firstSend()
	if err != nil {
		return nil, err
	}
	s["startMs"] = took.Seconds() * 1e3
	time.Sleep(10 * time.Second) // what a start leaves to do is over
	before, err := cpuOf(q.brProc.pid())
	if err != nil {
		return nil, err
	}
	time.Sleep(idleTime)
	after, err := cpuOf(q.brProc.pid())
	if err != nil {
		return nil, err
	}
	s["idleCPU"] = (after - before).Seconds() / idleTime.Seconds() * 100
	if err := q.memory(s); err != nil {
		return nil, err
	}
	took, err = q.stopBroker()
	s["stopMs"] = took.Seconds() * 1e3
	return s, err
}

// memory takes the sizes of both servers.
func (p *peer) memory(s sample) (err error) {
	for _, m := range []struct {
		name, field string
		of          *proc
	}{
		{"anonMiB", "RssAnon", p.brProc},
		{"rssMiB", "VmRSS", p.brProc},
		{"nsAnonMiB", "RssAnon", p.nsProc},
		{"nsRssMiB", "VmRSS", p.nsProc},
	} {
		if s[m.name], err = statusOf(m.of.pid(), m.field); err != nil {
			return err
		}
	}
	return nil
}

// largeStore kills a broker whose store has 2 GiB.
func (b *bench) largeStore(p *peer) (sample, error) {
	q, err := b.newPeer(p.make, "large")
	if err != nil {
		return nil, err
	}
	if err := q.createTopic(topic); err != nil {
		return nil, err
	}
	if _, err := q.load(q.brProc, "produce", "--verify=false", "-t", topic, "--count", fmt.Sprint(2<<30/1200), "--timeout", "10m"); err != nil {
		return nil, err
	}
	q.brProc.kill()
	took, err := q.firstSend()
	if err != nil {
		return nil, err
	}
	s := sample{"crashStartMs": took.Seconds() * 1e3}
	time.Sleep(75 * time.Second) // buffers that were needed go back
	if err := q.memory(s); err != nil {
		return nil, err
	}
	delete(s, "nsAnonMiB")
	delete(s, "nsRssMiB")
	return s, nil
}

func (b *bench) binarySize(p *peer) (sample, error) {
	if p.make == makeApache {
		return sample{"sizeMiB": float64(diskUse(filepath.Dir(b.classPath))) / (1 << 20)}, nil
	}
	path, err := exec.LookPath(b.mqx)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return sample{"sizeMiB": float64(info.Size()) / (1 << 20)}, nil
}
