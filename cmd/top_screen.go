package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"mqx/internal/vfs"
	"mqx/tui"
)

// What a screen that runs for days may take: the answers of large clusters are read and
// dropped with every refresh, and the collector would let them pile up.
const (
	topGCPercent   = 40
	topMemoryLimit = 36 << 20
)

// draw shows the cluster on the terminal.
func (o *topOptions) draw(a *app, c *cobra.Command, source tui.Source) error {
	defer debug.SetGCPercent(debug.SetGCPercent(topGCPercent))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(topMemoryLimit))
	layout, path, err := a.topLayout()
	if err != nil {
		return err
	}
	if o.theme != "" {
		layout.Theme = o.theme
	}
	t := tui.Options{
		Source: source, Interval: o.interval, FixedInterval: c.Flags().Changed("interval"), Rounds: o.rounds, Colour: a.color(true), Mouse: o.mouse, Now: time.Now,
		Layout: *layout,
	}
	if path != "" {
		t.Save = func(l tui.Layout) error { return saveLayout(path, &l) }
	}
	if !o.demo {
		o.acts(a, c, &t)
		// A cluster that is not there is an error, not an empty screen.
		first, err := source.Read(c.Context(), tui.Want{})
		if err != nil {
			return err
		}
		t.First = first
	}
	return tui.Run(c.Context(), a.In, a.Out, t)
}

// acts says how commands are run against the same cluster, and whether they may be.
func (o *topOptions) acts(a *app, c *cobra.Command, t *tui.Options) {
	var same []string
	if c.Flags().Changed("namesrv") {
		same = append(same, "-n", o.target.namesrv)
		t.Target = " -n '" + o.target.namesrv + "'"
	}
	if a.global.context != "" {
		same = append(same, "--context", a.global.context)
		t.Target += " --context '" + a.global.context + "'"
	}
	if err := a.mayNotChange(&o.target); err != nil {
		t.ReadOnly = err.Error()
		same = append(same, "--read-only")
	}
	self, err := os.Executable()
	if err != nil {
		return // lines are shown, and not run
	}
	t.Command = func(args []string) *exec.Cmd { return exec.CommandContext(c.Context(), self, append(args, same...)...) }
}

// topLayout is the layout that was saved, and where; no path where there is no place.
func (a *app) topLayout() (*tui.Layout, string, error) {
	_, contexts, err := a.contextsFile()
	if err != nil || contexts == "" {
		return &tui.Layout{}, "", err
	}
	path := filepath.Join(filepath.Dir(contexts), "top.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &tui.Layout{}, path, nil
	}
	l := &tui.Layout{}
	if err == nil {
		err = json.Unmarshal(b, l)
	}
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return nil, "", usagef("cannot read layout %q", path).because(err.Error()).try("rm %s", path)
	}
	return l, path, nil
}

func saveLayout(path string, l *tui.Layout) error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot save layout %q: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot save layout %q: %w", path, err)
	}
	if err := vfs.WriteFileDurable(vfs.OS, path, append(b, '\n')); err != nil {
		return fmt.Errorf("cannot save layout %q: %w", path, err)
	}
	return nil
}
