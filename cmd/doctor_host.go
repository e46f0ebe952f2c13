package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/doctor"
	"mqx/internal/hostinfo"
)

// doctorHostOptions are the flags of mqx doctor host.
type doctorHostOptions struct {
	doctorOptions
	stores []string
	pprof  []string
	root   string
}

func newDoctorHostCmd(a *app) *cobra.Command {
	o := &doctorHostOptions{}
	c := &cobra.Command{
		Use:   "host",
		Short: "Find what is wrong on this machine",
		Long: `Use it on the machine of a broker or name server, mqx's or Apache's: processors, devices,
network, memory, settings of the kernel, limits of the servers that run here. It asks no
cluster, reads what Linux tells, twice with some seconds between, and changes nothing.
What belongs to servers of other users only their user or root sees.

With --pprof it asks a server of mqx, started with --pprof ADDR, where its goroutines
stand and who holds its memory.
` + doctorLong,
		Example: `  mqx doctor host
  mqx doctor host --store /var/lib/mqx/store --for 1m
  mqx doctor host --pprof 127.0.0.1:6060 --rule cpu-hot --rule memory-growing --all
  mqx doctor host -o nagios --severity critical`,
		Args: exactArgs(),
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.runDoctor(c, &o.doctorOptions, func(ctx context.Context) (*diagnosed, error) { return o.gather(ctx, a) })
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.stores, "store", nil, "directory whose volume and disk are looked at; may be repeated")
		f.StringArrayVar(&o.pprof, "pprof", nil, "address at which a server of mqx serves its profiles (--pprof of the server); may be repeated")
		f.StringVar(&o.root, "root", "/", "where proc and sys of the machine are mounted, for a container that looks at its host")
	})
	o.add(c, 10*time.Second, doctor.ScopeHost)
	return c
}

func (o *doctorHostOptions) gather(ctx context.Context, a *app) (*diagnosed, error) {
	r := hostinfo.New(o.root)
	h := &doctor.Host{}
	for _, addr := range o.pprof {
		h.Profiles = append(h.Profiles, doctor.Profiles{Addr: addr})
	}
	var before []*hostinfo.Process
	err := a.twoLooks(ctx, o.over, func(first bool) error {
		found, err := r.Find(func(command []string) bool { return doctor.Server(command) != "" })
		if first {
			before = found
			h.Before = r.Read(time.Now())
			for i := range h.Profiles {
				p := &h.Profiles[i]
				p.HeapBefore, p.Err = heapOf(ctx, p.Addr)
			}
			return nil
		}
		h.ProcessErr = err
		h.Now = r.Read(time.Now())
		h.Processes = pairs(before, found)
		for i := range h.Profiles {
			readProfiles(ctx, &h.Profiles[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, dir := range o.stores {
		d, err := r.Disk(dir)
		if err != nil {
			h.DiskErrs = append(h.DiskErrs, err)
			continue
		}
		h.Disks = append(h.Disks, *d)
	}
	for _, err := range h.Now.Errors {
		a.note("%v", err)
	}
	return &diagnosed{findings: doctor.Diagnose(doctor.Evidence{Host: h}, doctor.Choice{Only: o.only, Skip: o.skip})}, nil
}

// pairs are the processes of the second look with what they were at the first.
func pairs(before, now []*hostinfo.Process) []doctor.HostProcess {
	var out []doctor.HostProcess
	for _, p := range now {
		one := doctor.HostProcess{What: doctor.Server(p.Command), Now: p}
		for _, b := range before {
			if b.PID == p.PID && b.Started.Equal(p.Started) {
				one.Before = b
			}
		}
		out = append(out, one)
	}
	return out
}

func heapOf(ctx context.Context, addr string) (*doctor.Heap, error) {
	text, err := get(ctx, "http://"+addr+"/debug/pprof/heap?debug=1")
	if err != nil {
		return nil, err
	}
	return doctor.ParseHeap(string(text))
}

func readProfiles(ctx context.Context, p *doctor.Profiles) {
	if p.Heap, p.Err = heapOf(ctx, p.Addr); p.Err != nil {
		return
	}
	text, err := get(ctx, "http://"+p.Addr+"/debug/pprof/goroutine?debug=1")
	if err == nil {
		p.Goroutines, err = doctor.ParseGoroutines(string(text))
	}
	p.Err = err
}
