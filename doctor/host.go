package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mqx/internal/hostinfo"
	"mqx/internal/words"
)

// Host is the evidence of one machine.
type Host struct {
	Now *hostinfo.Sample
	// Before is an earlier sample; nil: there is none, and rates are not known.
	Before    *hostinfo.Sample
	Processes []HostProcess // servers of RocketMQ on the machine; nil with ProcessErr
	// ProcessErr is why the processes are not known.
	ProcessErr error
	Disks      []hostinfo.Disk // of the directories that were named
	DiskErrs   []error
	// Profiles are those of servers that serve them; empty: none was named.
	Profiles []Profiles
}

// HostProcess is one server, at the two samples.
type HostProcess struct {
	What        string // mqx broker, mqx nameserver, java BrokerStartup, …
	Now, Before *hostinfo.Process
}

// Server is what server of RocketMQ a command line starts, "" for none: mqx's or
// Apache's.
func Server(command []string) string {
	if len(command) == 0 {
		return ""
	}
	switch filepath.Base(command[0]) {
	case "mqx", "mqbroker", "mqnamesrv":
		if len(command) > 1 && slices.Contains([]string{"broker", "nameserver", "dev", "start"}, command[1]) || filepath.Base(command[0]) != "mqx" {
			return strings.Join(append([]string{filepath.Base(command[0])}, command[1:min(2, len(command))]...), " ")
		}
	case "java":
		for _, class := range []string{"BrokerStartup", "NamesrvStartup", "ControllerStartup", "ProxyStartup", "BrokerContainerStartup"} {
			if slices.ContainsFunc(command, func(a string) bool { return strings.HasSuffix(a, "."+class) }) {
				return "java " + class
			}
		}
	}
	return ""
}

func (p *HostProcess) name() string { return fmt.Sprintf("%s (pid %d)", p.What, p.Now.PID) }

const (
	noSample = "there is one look at the machine only, and rates need two (--for)"
	notHere  = "this system does not tell"
)

var loadRules = []Rule{
	{
		ID: "cpu-hot", Scope: ScopeHost, Severity: Warning, judge: judgeCPU,
		Looks:   "All processors together were busy for 85 % of the time between the two looks.",
		Meaning: "requests wait for a processor; user time is work of the servers or of others, system time is the kernel's: many small reads and writes, or memory pressure",
		Mend:    "mqx doctor host --pprof ADDR shows where a server stands; mqx admin stats get --active --sort -inTps shows who sends",
	},
	{
		ID: "memory-growing", Scope: ScopeHost, Severity: Warning, judge: judgeGrowth,
		Looks:   "A server's memory grew by 16 MiB between the two looks.",
		Meaning: "one look is no leak: a cache that fills looks the same; look again later, and at the same sites",
		Mend:    "mqx doctor host --pprof ADDR --for 5m; mqx debug bundle -O bundle.tar.gz --pprof ADDR",
	},
	{
		ID: "device-saturated", Scope: ScopeHost, Severity: Warning, judge: judgeDevices,
		Looks:   "A device had an operation under way for 90 % of the time between the two looks.",
		Meaning: "on a spinning disk everything else waits; a device that takes many operations at a time may still have room",
		Mend:    "give the log a device of its own; mqx admin broker status shows put times",
	},
	{
		ID: "dirty-high", Scope: ScopeHost, Severity: Warning, judge: judgeDirty,
		Looks:   "Dirty and Writeback together are over a tenth of memory.",
		Meaning: "the disk does not keep up; at vm.dirty_ratio every writer is stopped until it does",
		Mend:    "sysctl -w vm.dirty_background_ratio=5; mqx doctor host again, and its rule device-saturated",
	},
	{
		ID: "network-errors", Scope: ScopeHost, Severity: Warning, judge: judgeNetwork,
		Looks:   "An interface dropped packets or had errors between the two looks.",
		Meaning: "connections wait for what is sent again: slow sends, late heartbeats",
		Mend:    "ethtool -S <NAME>; its ring buffers (ethtool -G), cable and switch",
	},
	{
		ID: "tcp-piling", Scope: ScopeHost, Severity: Warning, judge: judgeTCP,
		Looks:   "More than 5,000 sockets are in a state that should pass: CLOSE_WAIT, TIME_WAIT, SYN_RECV, FIN_WAIT.",
		Meaning: "CLOSE_WAIT: a process does not close what its peer has closed; TIME_WAIT: connections are made for single requests; SYN_RECV: more come than are accepted",
		Mend:    "ss -tanp state <NAME> shows whose they are; mqx admin client ls shows who connects",
	},
	{
		ID: "disk-room", Scope: ScopeHost, Severity: Critical, judge: judgeRoom,
		Looks:   "A directory that was named with --store lies on a volume that is at, or within five points of, 75, 85 or 90 %.",
		Meaning: "at 75 % expired files are deleted at any hour, at 85 % young ones too, at 90 % messages are refused",
		Mend:    "mqx admin config set -b BROKER fileReservedTime=24, or a larger volume for <NAME>",
	},
}

// rates are what the machine did between the two samples, nil without two.
func (j *judgement) rates() *hostinfo.Rates {
	h := j.Host
	if h.Before == nil || h.Now == nil {
		j.unknown(noSample)
		return nil
	}
	r := hostinfo.Between(h.Before, h.Now)
	return &r
}

func judgeCPU(j *judgement) {
	r := j.rates()
	if r == nil {
		return
	}
	if r.CPU == nil {
		j.unknown(notHere)
		return
	}
	c := r.CPU
	busy := 1 - c.Idle - c.IOWait
	text := fmt.Sprintf("%.0f %% of %d processors: user %.0f %%, system %.0f %%, interrupts %.0f %%, stolen %.0f %%, waiting for devices %.0f %%", busy*100, j.Host.Now.Processors,
		(c.User+c.Nice)*100, c.System*100, (c.IRQ+c.SoftIRQ)*100, c.Steal*100, c.IOWait*100)
	for i := range j.Host.Processes {
		p := &j.Host.Processes[i]
		if p.Before == nil || r.Over <= 0 {
			continue
		}
		user, system := (p.Now.User-p.Before.User)/r.Over.Seconds(), (p.Now.System-p.Before.System)/r.Over.Seconds()
		if user+system >= 0.2 {
			text += fmt.Sprintf("; %s user %.2f, system %.2f processors", p.name(), user, system)
		}
	}
	if busy < j.Limits.CPU {
		j.ok("%s", text)
		return
	}
	for i := range j.Host.Profiles {
		if p := &j.Host.Profiles[i]; p.Err == nil {
			text += fmt.Sprintf("; %s: %s", p.Addr, topStacks(p.Goroutines))
		}
	}
	j.find("", "%s", text)
}

func judgeGrowth(j *judgement) {
	known := 0
	for i := range j.Host.Profiles {
		p := &j.Host.Profiles[i]
		if p.Err != nil || p.HeapBefore == nil || p.Heap == nil {
			continue
		}
		known++
		if grown := p.Heap.InUse - p.HeapBefore.InUse; grown >= j.Limits.MemoryGrowth {
			j.find(p.Addr, "its heap grew from %s to %s; most of it: %s", size(p.HeapBefore.InUse), size(p.Heap.InUse), topSites(p.HeapBefore, p.Heap))
		}
	}
	for i := range j.Host.Processes {
		p := &j.Host.Processes[i]
		if p.Before == nil {
			continue
		}
		known++
		if grown := p.Now.Resident - p.Before.Resident; grown >= j.Limits.MemoryGrowth {
			text := fmt.Sprintf("resident memory grew from %s to %s", size(p.Before.Resident), size(p.Now.Resident))
			for k := range j.Host.Profiles {
				if h := j.Host.Profiles[k].Heap; h != nil && strings.HasPrefix(p.What, "mqx") {
					text += fmt.Sprintf("; heap of %s: %s", j.Host.Profiles[k].Addr, topSites(nil, h))
				}
			}
			j.find(p.name(), "%s", text)
		}
	}
	if known == 0 {
		j.unknown("no server of RocketMQ was seen twice on this machine, and none is named with --pprof")
	}
	j.ok("the memory of %d servers did not grow by %s", known, size(j.Limits.MemoryGrowth))
}

func judgeDevices(j *judgement) {
	r := j.rates()
	if r == nil {
		return
	}
	if j.Host.Now.Devices == nil || j.Host.Before.Devices == nil {
		j.unknown(notHere)
		return
	}
	var most float64
	for _, d := range r.Devices {
		most = max(most, d.Busy)
		if d.Busy >= j.Limits.DeviceBusy {
			j.find(d.Name, "busy for %.0f %% of %s: %.0f reads/s, %.0f writes/s, %s/s written", d.Busy*100, seconds(r.Over), d.Reads, d.Writes, size(int64(d.WriteBytes)))
		}
	}
	j.ok("the busiest of %d devices was so for %.0f %% of the time", len(r.Devices), most*100)
}

func judgeDirty(j *judgement) {
	m := j.Host.Now.Memory
	if m == nil || m.Dirty == nil || m.Writeback == nil || m.Total == nil || *m.Total == 0 {
		j.unknown(notHere)
		return
	}
	dirty := *m.Dirty + *m.Writeback
	text := fmt.Sprintf("Dirty %s, Writeback %s of %s", size(*m.Dirty), size(*m.Writeback), size(*m.Total))
	if float64(dirty) > j.Limits.Dirty*float64(*m.Total) {
		j.find("", "%s", text)
	}
	j.ok("%s", text)
}

func judgeNetwork(j *judgement) {
	r := j.rates()
	if r == nil {
		return
	}
	if j.Host.Now.Interfaces == nil || j.Host.Before.Interfaces == nil {
		j.unknown(notHere)
		return
	}
	for _, n := range r.Interfaces {
		if n.Drops > 0 || n.Errors > 0 {
			j.find(n.Name, "%s and %s in %s", words.Count(n.Drops, "drop"), words.Count(n.Errors, "error"), seconds(r.Over))
		}
	}
	j.ok("no drop and no error on %s in %s", words.Count(len(r.Interfaces), "interface"), seconds(r.Over))
}

func judgeTCP(j *judgement) {
	states := j.Host.Now.TCP
	if states == nil {
		j.unknown(notHere)
		return
	}
	for _, s := range []string{"close-wait", "time-wait", "syn-received", "fin-wait-1", "fin-wait-2", "last-ack", "closing"} {
		if n := states[s]; n > j.Limits.TCP {
			j.find(s, "%s", words.Count(n, "socket"))
		}
	}
	j.ok("established %d, time-wait %d, close-wait %d", states["established"], states["time-wait"], states["close-wait"])
}

func judgeRoom(j *judgement) {
	for _, err := range j.Host.DiskErrs {
		j.unknown("%v", err)
	}
	lines := []watermark{{90, "messages are refused", Critical}, {85, "young files are deleted", Critical}, {75, "expired files are deleted at any hour", Warning}}
	var seen []string
	for _, d := range j.Host.Disks {
		if d.Total <= 0 {
			j.unknown("the size of the volume of %s is not known", d.Path)
			continue
		}
		used := (d.Total - d.Free) * 100 / d.Total
		seen = append(seen, fmt.Sprintf("%s %d %%", d.Path, used))
		if text, bad, hit := lineOf(used, lines); hit {
			j.findAs(bad, d.Path, "%d %% of %s used, %s free: %s", used, size(d.Total), size(d.Free), text)
		}
	}
	if len(j.Host.Disks) == 0 && len(j.Host.DiskErrs) == 0 {
		j.unknown("no directory was named (--store)")
	}
	j.ok("used: %s", someOf(seen))
}

// since is how long a process runs, for texts.
func since(p *hostinfo.Process, now time.Time) string {
	if p.Started.IsZero() {
		return "?"
	}
	return now.Sub(p.Started).Round(time.Second).String()
}
