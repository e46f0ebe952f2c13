// Readspeed measures how long the reads of mqx admin take, start of the process
// included, on 3 name servers, 2 brokers and 50 topics of mqx on this machine:
//
//	cd e2e && go run ./readspeed [-runs N] [-reads PATTERN] [-apache DIR] MQX [MQX]
//
// MQX is a binary of mqx; two are measured in turns, the servers are of the first. It
// prints of each read the median, the least and the most of the runs, the CPU time of the
// process and the most memory. With -apache, a directory of Apache's jars, mqadmin's reads
// of the same are measured beside it. It ends with 1 when a median of the last binary is
// above 15 ms or a read takes more than 20 MiB.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"mqx/e2e/servers"
)

const (
	topics = 50

	mostTime   = 15 * time.Millisecond
	mostMemory = 20 << 10 // KiB
)

// only of these reads when set.
var reads = []string{
	"topic ls", "topic get T01", "topic get T01 --show route", "group ls", "group get G", "lag get", "offset get -g G", "broker ls", "broker status", "cluster ls",
	"client ls", "producer ls", "nameserver ls", "nameserver get --show topics", "config get", "stats get", "queue get T01", "ha status", "group status",
}

// apacheReads are reads of mqadmin, each with the one of mqx that tells the same.
var apacheReads = []struct{ mqadmin, mqx string }{{"topicList", "topic ls"}, {"clusterList", "broker status"}}

func main() {
	runs := flag.Int("runs", 7, "how often each read is made")
	pattern := flag.String("reads", "", "only reads that it matches")
	apache := flag.String("apache", "", "directory of Apache's jars: measure mqadmin too")
	flag.Parse()
	wanted, err := regexp.Compile(*pattern)
	if n := flag.NArg(); err == nil && (n < 1 || n > 2 || *runs < 1) {
		err = errors.New("usage: go run ./readspeed [-runs N] [-reads PATTERN] [-apache DIR] MQX [MQX]")
	}
	if err == nil {
		reads = slices.DeleteFunc(reads, func(read string) bool { return !wanted.MatchString(read) })
		err = measure(*runs, *apache, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func measure(runs int, apache string, binaries []string) (err error) {
	set, err := servers.New(binaries[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	for range 3 {
		if err := set.NameServer(); err != nil {
			return err
		}
	}
	for _, name := range []string{"a", "b"} {
		if _, err := set.Broker(name, "brokerName="+name, "mappedFileSizeCommitLog=1048576"); err != nil {
			return err
		}
	}
	if err := set.Registered(2); err != nil {
		return err
	}
	for i := range topics {
		if _, err := set.Admin("topic", "create", fmt.Sprintf("T%02d", i), "--queues", "4", "--yes"); err != nil {
			return fmt.Errorf("cannot create a topic: %w", err)
		}
	}
	for _, change := range []string{"group create G --yes", "offset reset -g G -t T01 --to 0 --yes"} {
		if _, err := set.Admin(strings.Fields(change)...); err != nil {
			return fmt.Errorf("mqx admin %s: %w", change, err)
		}
	}
	return report(set, runs, apache, binaries)
}

func report(set *servers.Set, runs int, apache string, binaries []string) (failed error) {
	fmt.Printf("| read | median ms | least | most | CPU ms | MiB |\n|---|---|---|---|---|---|\n")
	for _, read := range reads {
		took := make([]figures, len(binaries))
		for range runs {
			for i, binary := range binaries {
				c := set.Command(binary, append(append([]string{"admin"}, strings.Fields(read)...), "-n", set.NameServers)...)
				if err := took[i].run(c); err != nil {
					return fmt.Errorf("mqx admin %s: %w", read, err)
				}
			}
		}
		for i := range took {
			name := read
			if len(binaries) > 1 {
				name += " (" + filepath.Base(binaries[i]) + ")"
			}
			took[i].print(name)
		}
		last := took[len(took)-1]
		if m := median(last.wall); m > mostTime {
			failed = errors.Join(failed, fmt.Errorf("%s: %.1f ms, wanted at most %v", read, ms(m), mostTime))
		}
		if last.kib > mostMemory {
			failed = errors.Join(failed, fmt.Errorf("%s: %.1f MiB, wanted at most 20", read, float64(last.kib)/1024))
		}
	}
	if apache == "" {
		return failed
	}
	for _, read := range apacheReads {
		var took figures
		for range runs {
			c := set.Command("java", "-cp", filepath.Join(apache, "*"), "org.apache.rocketmq.tools.command.MQAdminStartup", read.mqadmin, "-n", set.NameServers)
			if err := took.run(c); err != nil {
				return fmt.Errorf("mqadmin %s: %w", read.mqadmin, err)
			}
		}
		took.print("mqadmin " + read.mqadmin + " (" + read.mqx + ")")
	}
	return failed
}

// figures are what the runs of one command took.
type figures struct {
	wall, cpu []time.Duration
	kib       int64 // the most resident memory
}

func (f *figures) run(c *exec.Cmd) error {
	began := time.Now()
	if _, err := c.Output(); err != nil {
		return err
	}
	f.wall = append(f.wall, time.Since(began))
	f.cpu = append(f.cpu, c.ProcessState.UserTime()+c.ProcessState.SystemTime())
	if use, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		f.kib = max(f.kib, use.Maxrss)
	}
	return nil
}

func (f *figures) print(name string) {
	fmt.Printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name, ms(median(f.wall)), ms(slices.Min(f.wall)), ms(slices.Max(f.wall)), ms(median(f.cpu)),
		float64(f.kib)/1024)
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
