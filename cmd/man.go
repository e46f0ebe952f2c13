package cmd

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

func newManCmd(a *app) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "man [COMMAND...]",
		Short: "Print the manual page of a command, or write all of them",
		Example: `  mqx man | man -l -
  mqx man admin topic ls | man -l -
  mqx man --dir /usr/local/share/man/man1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			if dir != "" {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return fmt.Errorf("cannot make directory %q: %w", dir, err)
				}
				if err := doc.GenManTree(root, manHeader(), dir); err != nil {
					return fmt.Errorf("cannot write manual pages into %q: %w", dir, err)
				}
				return nil
			}
			at, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("no manual page for %q", strings.Join(args, " ")).because("no command has that name").try("mqx help")
			}
			return doc.GenMan(at, manHeader(), a.Out)
		},
	}
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVar(&dir, "dir", "", "write the pages of all commands into this directory")
	})
	return c
}

// manHeader has a fixed date: the pages are committed, and change only when a
// command does.
func manHeader() *doc.GenManHeader {
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	return &doc.GenManHeader{Section: "1", Source: "mqx", Manual: "mqx manual", Date: &day}
}
