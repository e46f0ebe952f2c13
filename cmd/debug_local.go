package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mqx/doctor"
	"mqx/internal/hostinfo"
)

// servers adds the logs and profiles of the servers on this machine that have the store
// directory open.
func (g *gatherer) servers() {
	lacks := func(why error) {
		if len(g.o.logs) == 0 {
			g.absent = append(g.absent, missingPart{"logs", fmt.Errorf("%w: --log FILE takes one along", why)})
		}
		if len(g.o.pprof) == 0 {
			g.absent = append(g.absent, missingPart{"profiles", fmt.Errorf("%w: --pprof ADDRESS asks a server that was started with it", why)})
		}
	}
	if g.o.store == "" {
		lacks(errors.New("no store directory is known (--store, or that of a context) that would tell which process on this machine is meant"))
		return
	}
	store, err := filepath.Abs(g.o.store)
	if err == nil {
		store, err = filepath.EvalSymlinks(store)
	}
	if err != nil {
		lacks(fmt.Errorf("cannot look for the server of %q: %w", g.o.store, err))
		return
	}
	r := hostinfo.New("/")
	found, err := r.Find(func(command []string) bool { return doctor.Server(command) != "" })
	if err != nil {
		lacks(fmt.Errorf("cannot look for the server of %q: %w", store, err))
		return
	}
	var closed []error
	seen := false
	for _, p := range found {
		files, err := r.OpenFiles(p.PID)
		if err != nil {
			closed = append(closed, err)
			continue
		}
		if !slices.ContainsFunc(files, func(f hostinfo.OpenFile) bool { return within(store, f.Path) }) {
			continue
		}
		seen = true
		g.server(p, logsOf(store, files))
	}
	if !seen {
		lacks(errors.Join(append([]error{fmt.Errorf("no server on this machine has %q open", store)}, closed...)...))
	}
}

// server adds what one server has.
func (g *gatherer) server(p *hostinfo.Process, logs []string) {
	what := fmt.Sprintf("%s (pid %d)", doctor.Server(p.Command), p.PID)
	for _, path := range logs {
		if !slices.Contains(g.o.logs, path) {
			g.tail(fmt.Sprintf("logs/%d-%s", p.PID, filepath.Base(path)), path)
		}
	}
	if len(logs) == 0 && len(g.o.logs) == 0 {
		g.absent = append(g.absent, missingPart{"logs", fmt.Errorf("%s logs to no file: journalctl or its terminal has it, --log FILE takes one along", what)})
	}
	addr := flagOf(p.Command, "--pprof")
	switch {
	case addr != "" && !slices.Contains(g.o.pprof, addr):
		g.profiles(addr)
	case addr == "" && len(g.o.pprof) == 0:
		why := "was started without --pprof"
		if strings.HasPrefix(doctor.Server(p.Command), "java") {
			why = "is Java: jstack and jmap make its profiles"
		}
		g.absent = append(g.absent, missingPart{"profiles", fmt.Errorf("%s %s", what, why)})
	}
}

func within(dir, path string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// logsOf are the log files among those that a server has open: what it writes its output
// to, and what is called so. Files of its store are none.
func logsOf(store string, files []hostinfo.OpenFile) []string {
	var out []string
	for _, f := range files {
		output := f.FD == 1 || f.FD == 2
		if (output || filepath.Ext(f.Path) == ".log") && !within(store, f.Path) && !slices.Contains(out, f.Path) {
			out = append(out, f.Path)
		}
	}
	return out
}

// flagOf is the value of a flag in a command line, "" where it is not given.
func flagOf(command []string, flag string) string {
	for i, word := range command {
		if value, ok := strings.CutPrefix(word, flag+"="); ok {
			return value
		}
		if word == flag && i+1 < len(command) {
			return command[i+1]
		}
	}
	return ""
}
