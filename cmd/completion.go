package cmd

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionFiles are the shells and the file each script is committed as.
var completionFiles = map[string]string{"bash": "mqx.bash", "zsh": "_mqx", "fish": "mqx.fish", "powershell": "mqx.ps1"}

var completionShells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletionCmd(a *app) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh, fish or powershell",
		Long: `The script completes commands and flags, and asks the name server for live
topics, groups and brokers. Packages install it; otherwise load it by hand.`,
		Example: `  source <(mqx completion bash)
  mqx completion zsh > "${fpath[1]}/_mqx"
  mqx completion fish > ~/.config/fish/completions/mqx.fish`,
		ValidArgs: completionShells,
		Args:      optionalArg(),
		RunE: func(c *cobra.Command, args []string) error {
			if dir != "" {
				return writeCompletions(c.Root(), dir)
			}
			if len(args) == 0 {
				return usagef("cannot run %q: SHELL is missing", c.CommandPath()).try("%s bash", c.CommandPath())
			}
			text, err := completionScript(c.Root(), args[0])
			if err != nil {
				return err
			}
			_, err = a.Out.Write(text)
			return err
		},
	}
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVar(&dir, "dir", "", "write the scripts of all shells into this directory")
	})
	return c
}

func completionScript(root *cobra.Command, shell string) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch shell {
	case "bash":
		err = root.GenBashCompletionV2(&b, true)
	case "zsh":
		err = root.GenZshCompletion(&b)
	case "fish":
		err = root.GenFishCompletion(&b, true)
	case "powershell":
		err = root.GenPowerShellCompletionWithDesc(&b)
	default:
		return nil, unknownShell(shell)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make the completion script for %q: %w", shell, err)
	}
	return b.Bytes(), nil
}

func unknownShell(shell string) error {
	f := notOneOf("SHELL", shell, completionShells...)
	f.Err = fmt.Errorf("unknown shell %q", shell)
	return f.try("mqx completion %s", cmp.Or(nearest(shell, completionShells), completionShells[0]))
}

func writeCompletions(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make directory %q: %w", dir, err)
	}
	for _, shell := range slices.Sorted(slices.Values(completionShells)) {
		text, err := completionScript(root, shell)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, completionFiles[shell])
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("cannot write file %q: %w", path, err)
		}
	}
	return nil
}
