package tui

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"
)

// Run shows the cluster on a terminal until somebody ends it, its rounds are over, or
// ctx ends.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	m := NewModel(ctx, o)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, tea.ErrProgramKilled), err == nil:
		return nil
	}
	return fmt.Errorf("cannot show the cluster: %w", err)
}
