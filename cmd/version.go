package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the release build (-ldflags -X); empty in a plain go build or go run,
// where the build information of the toolchain answers.
var (
	version = ""
	commit  = ""
	date    = ""
)

// buildVersion returns version, commit and commit time of this binary; parts
// that nobody recorded are "unknown".
func buildVersion() (v, rev, when string) {
	v, rev, when = version, commit, date
	if info, ok := debug.ReadBuildInfo(); ok {
		if v == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && rev == "":
				rev = s.Value
			case s.Key == "vcs.time" && when == "":
				when = s.Value
			}
		}
	}
	if v == "" {
		v = "devel"
	}
	for _, p := range []*string{&rev, &when} {
		if *p == "" {
			*p = "unknown"
		}
	}
	return v, rev, when
}

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of mqx",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v, rev, when := buildVersion()
			_, err := fmt.Fprintf(a.Out, "mqx %s\ncommit %s %s\n%s %s/%s\n", v, rev, when, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
