package cmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError turns what pflag says of a flag into a usage failure; an unknown
// flag names the nearest one of the command.
func flagError(c *cobra.Command, err error) error {
	help := c.CommandPath() + " --help"
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(c, unknown)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		f := missing.GetFlag()
		return usagef("cannot use --%s without a value", f.Name).because("it takes "+article(f.Value.Type())).try("%s", help)
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := usagef("cannot use --%s %q", bad.GetFlag().Name, bad.GetValue())
		if bad.GetFlag().Value.Type() == "source" { // the text may be a secret
			f = usagef("cannot use the value of --%s", bad.GetFlag().Name)
		}
		if said, ok := errors.AsType[*Failure](bad); ok {
			_, why, _ := cutReason(said.Error())
			return f.because(why).try("%s", said.Try)
		}
		return f.because("it takes "+article(bad.GetFlag().Value.Type())).try("%s", help)
	}
	return (&Failure{Code: ExitUsage, Err: err}).because("flags are --name value, --name=value or -n value").try("%s", help)
}

func unknownFlag(c *cobra.Command, unknown *pflag.NotExistError) error {
	name, shorts := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	if args := c.Flags().Args(); isGroup(c) && len(args) > 0 {
		return unknownCommand(c, args[0]) // the flag is one of a command that is not there
	}
	given := "--" + name
	if shorts != "" {
		given = "-" + name
	}
	f := usagef("unknown flag %s for %q", given, c.CommandPath()).because("the command has no such flag")
	if name == "version" {
		return f.try("%s version", c.Root().Name())
	}
	var names []string
	collect := func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	}
	c.Flags().VisitAll(collect)
	c.InheritedFlags().VisitAll(collect)
	word := name
	if shorts != "" {
		word = shorts // -name with one dash too few
	}
	if near := nearest(word, names); near != "" && len(word) > 1 {
		return f.try("--%s", near)
	}
	return f.try("%s --help", c.CommandPath())
}

// article names what a flag of this type takes.
func article(kind string) string {
	if what, ok := map[string]string{
		"bool": "true or false", "int": "a whole number", "int32": "a whole number", "int64": "a whole number",
		"duration": "a time such as 300ms, 10s or 15m", "string": "a text", "stringArray": "a text", "size": "a size such as 4KiB",
		"source": "the place of a secret: env:NAME, file:PATH, cmd:COMMAND or text:VALUE",
	}[kind]; ok {
		return what
	}
	return fmt.Sprintf("a %s", kind)
}
