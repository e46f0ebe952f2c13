package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// A slave of either make follows a master of either make, from a log that is there already and under load, through a
// SIGKILL of the slave and through connections that are cut at any byte: then both logs are the same bytes, the slave's store is sound, and it serves what its master had (N087).
func TestReplication(t *testing.T) {
	for _, tt := range []struct {
		name          string
		master, slave func(*testing.T, brokerSpec) *process
		all           bool // only with MQX_E2E_ALL=1
	}{
		{"mqx_mqx", mqxBroker, mqxBroker, false},
		{"mqx_apache", mqxBroker, apacheBroker, true},
		{"apache_mqx", apacheBroker, mqxBroker, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.all && os.Getenv("MQX_E2E_ALL") != "1" {
				t.Skip("MQX_E2E_ALL=1 runs it too")
			}
			t.Parallel()
			dir := testDir(t, "replication")
			ns := freePort(t)
			mqxNameserver(t, ns).cleanup(t)
			name := "broker-" + strings.ReplaceAll(tt.name, "_", "-")
			master := brokerSpec{name: name, port: freePort(t), namesrv: loopback(ns), store: filepath.Join(dir, "master"), extra: []string{"enableConsumeQueueExt=false"}}
			slave := master
			slave.port, slave.store = freePort(t), filepath.Join(dir, "slave")
			link := newCutLink(t, loopback(master.port+1))
			slave.extra = append(slave.extra, "brokerRole=SLAVE", "brokerId=1", "slaveReadEnable=true", "haMasterAddress="+link.addr)
			few := 3 // cuts each time; a slave of Apache takes 5 to 10 s from one to the next
			if !tt.all {
				few = 2 // mqx's 1 s
			}
			m := tt.master(t, master)
			m.cleanup(t)
			produce := func(n int) {
				t.Helper()
				file := filepath.Join(dir, "messages")
				var b bytes.Buffer
				for i := range n {
					fmt.Fprintf(&b, "%04d %s\n", i, strings.Repeat("x", 2000))
				}
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				mqx(t, "produce", "REPL", "-n", loopback(ns), "--key", "k", "--retries", "10", "--timeout", "120s", file)
			}
			waitFor(t, 60*time.Second, "the master at its name server", func() (bool, string) {
				text, err := output(mqxBinary, "admin", "topic", "create", "REPL", "-b", loopback(master.port), "-n", loopback(ns), "--queues", "2", "--yes")
				return err == nil, text
			})
			produce(1500) // three files, before the slave comes
			cut := link.spoil(900_000, few)
			s := tt.slave(t, slave)
			if s.name == "apache-broker" {
				leadApache(t, slave.port, link.addr, master.port)
			}
			produce(300)
			cut(t) // from empty
			produce(300)
			s.kill()
			produce(300)
			cut = link.spoil(200_000, few)
			s = tt.slave(t, slave)
			s.cleanup(t)
			if s.name == "apache-broker" {
				leadApache(t, slave.port, link.addr, master.port)
			}
			produce(300)
			cut(t) // from behind
			produce(300)
			waitFor(t, 120*time.Second, "the slave to come to the end", func() (bool, string) {
				diff := sameLogs(t, master.store, slave.store)
				return diff == "", diff
			})
			// Apache's slaves look at the tables of their master once a minute.
			waitFor(t, 120*time.Second, "the topic at the slave", func() (bool, string) {
				text, err := os.ReadFile(filepath.Join(slave.store, "config", "topics.json"))
				return bytes.Contains(text, []byte(`"REPL"`)), fmt.Sprint(err)
			})
			if err := m.stop(t, stopLimit); err != nil && strings.HasPrefix(m.name, "mqx") {
				t.Errorf("the master ended with %v", err)
			}
			// The master is away: what it had is served by the slave.
			waitFor(t, 60*time.Second, "all messages from the slave", func() (bool, string) {
				text, err := output(mqxBinary, "consume", "REPL", "-n", loopback(ns), "--start", "start", "-o", "name", "--timeout", "30s")
				n := strings.Count(text, "\n")
				return err == nil && n == 3000, fmt.Sprint(n, " messages, ", err, text)
			})
			if err := s.stop(t, stopLimit); err != nil && strings.HasPrefix(s.name, "mqx") {
				t.Errorf("the slave ended with %v", err)
			}
			if text, err := output(mqxBinary, "store", "verify", slave.store, "-o", "json"); err != nil {
				t.Errorf("the slave's store: %v\n%s", err, text)
			}
		})
	}
}

// leadApache tells a slave of Apache where its master's replication port is: 5.5 reads haMasterAddress before there is anything
// that it could be told to, and only keeps it from being overwritten by what name servers tell.
func leadApache(t *testing.T, slave int, ha string, master int) {
	t.Helper()
	conn := remoteclient.New(remoteclient.Config{})
	defer func() { _ = conn.Close() }()
	waitFor(t, 30*time.Second, "a slave of Apache to take an address", func() (bool, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		resp, err := conn.Call(ctx, loopback(slave), remoting.NewRequest(remoting.ReqExchangeBrokerHAInfo, &remoting.ExchangeBrokerHAInfoHeader{
			MasterHAAddress: ha, MasterAddress: loopback(master),
		}))
		return err == nil && resp.Code == remoting.RespSuccess, fmt.Sprint(resp, err)
	})
}

// sameLogs tells how the commit logs of two stores differ; "" when they do not.
func sameLogs(t *testing.T, a, b string) string {
	t.Helper()
	read := func(dir string) map[string][]byte {
		out := map[string][]byte{}
		files, err := filepath.Glob(filepath.Join(dir, "commitlog", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				continue // it went meanwhile
			}
			if data = bytes.TrimRight(data, "\x00"); len(data) > 0 {
				out[filepath.Base(f)] = data
			}
		}
		return out
	}
	x, y := read(a), read(b)
	for name, data := range x {
		if !bytes.Equal(data, y[name]) {
			return fmt.Sprintf("file %s: %d bytes at the master, %d at the slave", name, len(data), len(y[name]))
		}
	}
	if len(x) != len(y) {
		return fmt.Sprintf("%d files at the master, %d at the slave", len(x), len(y))
	}
	return ""
}
