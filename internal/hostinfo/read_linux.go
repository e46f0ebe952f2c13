package hostinfo

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"

	"mqx/internal/sorted"
)

func newReader(root string) *Reader {
	return &Reader{proc: filepath.Join(root, "proc"), sys: filepath.Join(root, "sys")}
}

// sectorBytes is the unit of /proc/diskstats, whatever the device has.
const sectorBytes = 512

// Read reads the machine; now is the time of the sample. It costs about ten small files
// and one line a TCP socket.
func (r *Reader) Read(now time.Time) *Sample {
	s := &Sample{At: now, Sysctl: map[string]int64{}}
	proc, err := procfs.NewFS(r.proc)
	if err != nil {
		s.fail("the machine", err)
		return s
	}
	for _, part := range []struct {
		name string
		read func(*Sample, procfs.FS) error
	}{
		{"load", readLoad},
		{"processors", readCPU},
		{"memory", readMemory},
		{"devices", r.readDevices},
		{"network", readNetwork},
		{"TCP states", r.readTCP},
		{"kernel settings", r.readSysctl},
		{"the control group", r.readContainer},
	} {
		if err := part.read(s, proc); err != nil {
			s.fail(part.name, err)
		}
	}
	return s
}

func (s *Sample) fail(what string, err error) {
	s.Errors = append(s.Errors, fmt.Errorf("cannot read %s: %w", what, err))
}

func readLoad(s *Sample, proc procfs.FS) error {
	l, err := proc.LoadAvg()
	if err == nil {
		s.Load = &Load{l.Load1, l.Load5, l.Load15}
	}
	return err
}

func readCPU(s *Sample, proc procfs.FS) error {
	st, err := proc.Stat()
	if err != nil {
		return err
	}
	t := st.CPUTotal
	s.Processors = len(st.CPU)
	s.CPU = &CPU{User: t.User, Nice: t.Nice, System: t.System, Idle: t.Idle, IOWait: t.Iowait, IRQ: t.IRQ, SoftIRQ: t.SoftIRQ, Steal: t.Steal}
	return nil
}

func readMemory(s *Sample, proc procfs.FS) error {
	m, err := proc.Meminfo()
	if err != nil {
		return err
	}
	s.Memory = &Memory{
		Total: signed(m.MemTotalBytes), Available: signed(m.MemAvailableBytes), Dirty: signed(m.DirtyBytes), Writeback: signed(m.WritebackBytes),
		SwapTotal: signed(m.SwapTotalBytes), SwapFree: signed(m.SwapFreeBytes),
	}
	return nil
}

func signed(n *uint64) *int64 {
	if n == nil {
		return nil
	}
	v := int64(*n)
	return &v
}

// readDevices reads /proc/diskstats. Loop devices and memory disks are left out, and so
// are partitions: their device counts them.
func (r *Reader) readDevices(s *Sample, _ procfs.FS) error {
	block, err := blockdevice.NewFS(r.proc, r.sys)
	if err != nil {
		return err
	}
	stats, err := block.ProcDiskstats()
	if err != nil {
		return err
	}
	s.Devices = []Device{}
	for _, d := range stats {
		if strings.HasPrefix(d.DeviceName, "loop") || strings.HasPrefix(d.DeviceName, "ram") || strings.HasPrefix(d.DeviceName, "zram") {
			continue
		}
		if _, err := os.Stat(filepath.Join(r.sys, "block", d.DeviceName)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s.Devices = append(s.Devices, Device{
			Name: d.DeviceName, Reads: int64(d.ReadIOs), Writes: int64(d.WriteIOs),
			ReadBytes: int64(d.ReadSectors) * sectorBytes, WriteBytes: int64(d.WriteSectors) * sectorBytes,
			Busy: time.Duration(d.IOsTotalTicks) * time.Millisecond, Rotational: r.rotational(d.DeviceName),
		})
	}
	sorted.By(s.Devices, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

func (r *Reader) rotational(device string) *bool {
	text, err := os.ReadFile(filepath.Join(r.sys, "block", device, "queue", "rotational"))
	if err != nil {
		return nil
	}
	turns := strings.TrimSpace(string(text)) == "1"
	return &turns
}

func readNetwork(s *Sample, proc procfs.FS) error {
	dev, err := proc.NetDev()
	if err != nil {
		return err
	}
	s.Interfaces = []Interface{}
	for _, d := range dev {
		s.Interfaces = append(s.Interfaces, Interface{
			Name: d.Name, ReceivedBytes: int64(d.RxBytes), SentBytes: int64(d.TxBytes), ReceivedDrops: int64(d.RxDropped), SentDrops: int64(d.TxDropped),
			ReceivedErrors: int64(d.RxErrors), SentErrors: int64(d.TxErrors),
		})
	}
	sorted.By(s.Interfaces, func(a, b Interface) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// readTCP counts sockets by state. It reads line by line, and keeps none of them: a
// server has many.
func (r *Reader) readTCP(s *Sample, _ procfs.FS) error {
	counts := map[string]int64{}
	for _, name := range []string{"tcp", "tcp6"} {
		err := countTCP(filepath.Join(r.proc, "net", name), counts)
		if name == "tcp6" && errors.Is(err, fs.ErrNotExist) {
			continue // there is no IPv6 here
		}
		if err != nil {
			return err
		}
	}
	s.TCP = counts
	return nil
}

func countTCP(name string, counts map[string]int64) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[0] == "sl" {
			continue
		}
		if state, ok := tcpStates[fields[3]]; ok {
			counts[state]++
		}
	}
	return lines.Err()
}

func (r *Reader) readSysctl(s *Sample, _ procfs.FS) error {
	for _, name := range sysctls {
		n, err := readNumber(filepath.Join(r.proc, "sys", strings.ReplaceAll(name, ".", "/")))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			s.fail(name, err)
		default:
			s.Sysctl[name] = n
		}
	}
	return nil
}

// readNumber reads a file with one number.
func readNumber(name string) (int64, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func (r *Reader) readContainer(s *Sample, proc procfs.FS) error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	s.Container, err = r.container(self)
	return err
}
