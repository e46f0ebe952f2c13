package cmd

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError turns what pflag says of a flag into a usage failure; an unknown
// flag names the nearest one of the command.
func flagError(c *cobra.Command, err error) error {
	f := &Failure{Code: ExitUsage, Err: err}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return f.try("%s --help", c.CommandPath())
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() == "" && len(name) > 1 {
		f.Err = errors.New("unknown flag --" + name + " for \"" + c.CommandPath() + "\"")
	}
	var names []string
	collect := func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	}
	c.Flags().VisitAll(collect)
	c.InheritedFlags().VisitAll(collect)
	if near := nearest(name, names); near != "" && len(name) > 1 {
		return f.try("--%s", near)
	}
	return f.try("%s --help", c.CommandPath())
}
