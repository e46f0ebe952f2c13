package cmd

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"mqx/internal/render"
)

// Set by the release build (-ldflags -X); empty in a plain go build or go run,
// where the build information of the toolchain answers.
var (
	version = ""
	commit  = ""
	date    = ""
)

// buildVersion returns version, commit and commit time of this binary; parts
// that nobody recorded are "".
func buildVersion() (v, rev, when string) {
	v, rev, when = version, commit, date
	if info, ok := debug.ReadBuildInfo(); ok {
		if v == "" && info.Main.Version != "(devel)" {
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
	return v, rev, when
}

var versionSchema = render.Schema{Kind: "Version", Name: "version", Fields: []render.Field{
	{Name: "version", Doc: "version of mqx"},
	{Name: "commit", Doc: "commit it was built from"},
	{Name: "date", Doc: "time of that commit"},
	{Name: "go", Doc: "Go release it was built with"},
	{Name: "platform", Doc: "operating system and architecture"},
}}

func newVersionCmd(a *app) *cobra.Command {
	o := &outputFlags{}
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of mqx",
		Example: "  mqx version\n  mqx version -o name",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			return a.printRows(o, versionSchema, func() ([][]any, error) {
				v, rev, when := buildVersion()
				return [][]any{{v, orUnknown(rev), orUnknown(when), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}, nil
			})
		},
	}
	o.add(c)
	return c
}
