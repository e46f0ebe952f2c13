package doctor

import (
	"fmt"
	"slices"

	"mqx/internal/words"
)

var kernelRules = []Rule{
	{
		ID: "file-limit", Scope: ScopeHost, Severity: Warning, judge: judgeDescriptors,
		Looks:   "A server may open fewer than 100,000 files, or has opened 80 % of what it may.",
		Meaning: "files of queues and connections count: at the limit connections are refused and files cannot be opened",
		Mend:    "LimitNOFILE=655350 in the unit of the server (systemd), or ulimit -n 655350 before it is started",
	},
	{
		ID: "map-count", Scope: ScopeHost, Severity: Warning, judge: judgeMaps,
		Looks:   "A server has used 80 % of vm.max_map_count, or it is under 65,530.",
		Meaning: "at the limit files cannot be mapped (Map failed); Apache's broker maps every file of every queue, mqx only what is read",
		Mend:    "sysctl -w vm.max_map_count=655360, and the same in /etc/sysctl.d",
	},
	{
		ID: "min-free", Scope: ScopeHost, Severity: Warning, judge: judgeMinFree,
		Looks:   "vm.min_free_kbytes is under 1 % of memory (at most 1 GiB).",
		Meaning: "with little kept free, a put waits until the kernel has freed pages: jitter of writes on a machine whose memory is all page cache",
		Mend:    "sysctl -w vm.min_free_kbytes=<NAME>, and the same in /etc/sysctl.d",
	},
	{
		ID: "dirty-ratio", Scope: ScopeHost, Severity: Warning, judge: judgeDirtyRatio,
		Looks:   "What vm.dirty_ratio lets wait for the disk takes more than 30 s to write on its kind of disk (120 MB/s for one that turns, 500 MB/s for others), or vm.dirty_background_ratio is not below it.",
		Meaning: "when that much has gathered, every writer is stopped until it is written",
		Mend:    "sysctl -w vm.dirty_background_ratio=5 vm.dirty_ratio=<NAME>, and the same in /etc/sysctl.d",
	},
	{
		ID: "swappiness", Scope: ScopeHost, Severity: Warning, judge: judgeSwap,
		Looks:   "vm.swappiness is over 10 on a machine with swap space.",
		Meaning: "the kernel swaps parts of a server out to keep more page cache: requests then wait for the disk",
		Mend:    "sysctl -w vm.swappiness=1, and the same in /etc/sysctl.d",
	},
	{
		ID: "extra-free", Scope: ScopeHost, Severity: Note, judge: judgeExtraFree,
		Looks:   "vm.extra_free_kbytes, which guides to RocketMQ set: it exists only in kernels of some vendors.",
		Meaning: "this kernel does not have it, and nothing is missing: vm.min_free_kbytes does what can be done",
		Mend:    "nothing: leave it out of /etc/sysctl.d",
	},
	{
		ID: "container-memory", Scope: ScopeHost, Severity: Critical, judge: judgeContainer,
		Looks:   "A server has used 90 % of the memory limit of its container, or the limit is under 256 MiB.",
		Meaning: "page cache counts too, but can be given back; at the limit the kernel reclaims within each write, and then kills the server",
		Mend:    "a higher memory limit of the container of <NAME>; GOMEMLIMIT at 60 % of it for mqx, a smaller -Xmx and MaxDirectMemorySize for Apache's",
	},
}

func (j *judgement) processes(f func(p *HostProcess)) int {
	if err := j.Host.ProcessErr; err != nil {
		j.unknown("the processes of this machine are not known: %v", err)
		return 0
	}
	for i := range j.Host.Processes {
		f(&j.Host.Processes[i])
	}
	return len(j.Host.Processes)
}

const noServer = "no server of RocketMQ runs on this machine, as far as this user sees"

func judgeDescriptors(j *judgement) {
	if j.processes(func(p *HostProcess) {
		if p.Now.MaxOpen == nil {
			j.unknown("the limits of %s may not be read", p.name())
			return
		}
		most := *p.Now.MaxOpen
		text := fmt.Sprintf("it may open %s", words.Count(most, "file"))
		if p.Now.Open != nil {
			text += fmt.Sprintf(", and has %d open after %s", *p.Now.Open, since(p.Now, j.Host.Now.At))
		}
		switch {
		case p.Now.Open != nil && *p.Now.Open*10 >= most*8:
			j.findAs(Critical, p.name(), "%s", text)
		case most < j.Limits.Descriptors:
			j.find(p.name(), "%s", text)
		}
	}) == 0 && j.Host.ProcessErr == nil {
		j.unknown(noServer)
	}
	j.ok("every server may open %s or more", words.Count(j.Limits.Descriptors, "file"))
}

// defaultMaps is the kernel's own default of vm.max_map_count.
const defaultMaps = 65_530

func judgeMaps(j *judgement) {
	most, there := j.Host.Now.Sysctl["vm.max_map_count"]
	if !there {
		j.unknown(notHere)
		return
	}
	if most < defaultMaps {
		j.find("", "vm.max_map_count is %d", most)
	}
	var used int64
	if j.processes(func(p *HostProcess) {
		if p.Now.Maps == nil {
			j.unknown("the mappings of %s may not be read", p.name())
			return
		}
		used = max(used, *p.Now.Maps)
		if *p.Now.Maps*10 >= most*8 {
			j.findAs(Critical, p.name(), "it has %s, vm.max_map_count is %d", words.Count(*p.Now.Maps, "mapping"), most)
		}
	}) == 0 && len(j.found) == 0 {
		j.unknown("vm.max_map_count is %d; what is needed shows only while a server runs here", most)
	}
	j.ok("vm.max_map_count is %d, a server has at most %s", most, words.Count(used, "mapping"))
}

func judgeMinFree(j *judgement) {
	kb, there := j.Host.Now.Sysctl["vm.min_free_kbytes"]
	m := j.Host.Now.Memory
	if !there || m == nil || m.Total == nil {
		j.unknown(notHere)
		return
	}
	want := min(1<<20, *m.Total/1024/100)
	if kb < want {
		j.findMend(Warning, "", fmt.Sprintf("sysctl -w vm.min_free_kbytes=%d, and the same in /etc/sysctl.d", want), "vm.min_free_kbytes is %d (%s of %s)", kb, size(kb<<10), size(*m.Total))
	}
	j.ok("vm.min_free_kbytes is %d of %s", kb, size(*m.Total))
}

// Rates of writing that are taken for a kind of disk, bytes a second.
const (
	turningRate = 120 << 20
	solidRate   = 500 << 20
	dirtySecs   = 30
)

// turning says whether the disks of the machine turn: those that were named, else all;
// ok is false where that is not known or they differ.
func (h *Host) turning() (turns, ok bool) {
	var kinds []*bool
	for _, d := range h.Disks {
		kinds = append(kinds, d.Rotational)
	}
	if len(kinds) == 0 {
		for _, d := range h.Now.Devices {
			kinds = append(kinds, d.Rotational)
		}
	}
	if len(kinds) == 0 || slices.Contains(kinds, nil) {
		return false, false
	}
	for _, k := range kinds {
		if *k != *kinds[0] {
			return true, false
		}
	}
	return *kinds[0], true
}

func judgeDirtyRatio(j *judgement) {
	s, m := j.Host.Now.Sysctl, j.Host.Now.Memory
	ratio, okRatio := s["vm.dirty_ratio"]
	background, okBackground := s["vm.dirty_background_ratio"]
	if !okRatio || !okBackground || m == nil || m.Total == nil {
		j.unknown(notHere)
		return
	}
	if bytes := s["vm.dirty_bytes"]; bytes > 0 {
		ratio = bytes * 100 / *m.Total // it replaces the ratio
		background = s["vm.dirty_background_bytes"] * 100 / *m.Total
	} else if background >= ratio {
		j.findMend(Warning, "", fmt.Sprintf("sysctl -w vm.dirty_background_ratio=%d, and the same in /etc/sysctl.d", max(1, ratio/2)), "vm.dirty_background_ratio is %d, vm.dirty_ratio %d: the disk begins only when writers stop", background, ratio)
	}
	turns, ok := j.Host.turning()
	if !ok {
		j.unknown("vm.dirty_ratio is %d; what kind of disk the data lies on is not known: name it with --store", ratio)
		return
	}
	kind, rate := "a disk that does not turn", int64(solidRate)
	if turns {
		kind, rate = "a disk that turns, as the kernel says", turningRate
	}
	waits := *m.Total / 100 * ratio
	if takes := waits / rate; takes > dirtySecs {
		j.findMend(Warning, "", fmt.Sprintf("sysctl -w vm.dirty_background_ratio=%d vm.dirty_ratio=%d, and the same in /etc/sysctl.d", max(1, ratio*dirtySecs/takes/2), max(2, ratio*dirtySecs/takes)),
			"vm.dirty_ratio %d lets %s wait, about %d s of writing on %s", ratio, size(waits), takes, kind)
	}
	j.ok("vm.dirty_ratio %d, vm.dirty_background_ratio %d: %s at most, on %s", ratio, background, size(waits), kind)
}

func judgeSwap(j *judgement) {
	n, there := j.Host.Now.Sysctl["vm.swappiness"]
	m := j.Host.Now.Memory
	if !there || m == nil || m.SwapTotal == nil {
		j.unknown(notHere)
		return
	}
	if *m.SwapTotal > 0 && n > 10 {
		j.find("", "vm.swappiness is %d, swap space %s", n, size(*m.SwapTotal))
	}
	j.ok("vm.swappiness is %d, swap space %s", n, size(*m.SwapTotal))
}

func judgeExtraFree(j *judgement) {
	if len(j.Host.Now.Sysctl) == 0 {
		j.unknown(notHere)
		return
	}
	if kb, there := j.Host.Now.Sysctl["vm.extra_free_kbytes"]; there {
		j.ok("this kernel has it: %d", kb)
		return
	}
	j.find("", "this kernel has no vm.extra_free_kbytes, as most have not")
}

// leastContainer is a memory limit that is too small for a broker under load.
const leastContainer = 256 << 20

func judgeContainer(j *judgement) {
	judged := 0
	j.processes(func(p *HostProcess) {
		c := p.Now.Container
		if c == nil {
			return
		}
		judged++
		text := fmt.Sprintf("its container has %s", size(c.Limit))
		if c.Used != nil {
			text += fmt.Sprintf(", %s of it used (page cache included), %s by the server itself", size(*c.Used), size(p.Now.Resident))
		}
		switch {
		case p.Now.Resident*10 >= c.Limit*9:
			j.find(p.name(), "%s", text)
		case c.Limit < leastContainer:
			j.findAs(Warning, p.name(), "%s", text)
		}
	})
	if c := j.Host.Now.Container; judged == 0 && c != nil {
		j.ok("the limit here is %s", size(c.Limit))
		return
	}
	if judged == 0 && len(j.Host.Processes) == 0 {
		j.unknown(noServer)
	}
	j.ok("%s a memory limit, and room below it", words.Count(judged, "server has", "servers have"))
}
