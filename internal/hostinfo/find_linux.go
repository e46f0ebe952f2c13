package hostinfo

import (
	"fmt"

	"github.com/prometheus/procfs"

	"mqx/internal/sorted"
)

// maxProcesses bounds how many processes Find reads whole.
const maxProcesses = 64

// Find reads the processes whose command line is wanted, by pid. Processes that ended
// meanwhile, or whose command line may not be read, are left out.
func (r *Reader) Find(want func(command []string) bool) ([]*Process, error) {
	proc, err := procfs.NewFS(r.proc)
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	all, err := proc.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	sorted.By(all, func(a, b procfs.Proc) int { return a.PID - b.PID })
	var out []*Process
	for _, p := range all {
		args, err := p.CmdLine()
		if err != nil || len(args) == 0 || !want(args) || len(out) == maxProcesses {
			continue
		}
		if one, err := r.Process(p.PID); err == nil {
			out = append(out, one)
		}
	}
	return out, nil
}
