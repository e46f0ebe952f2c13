package render

import "github.com/olekukonko/tablewriter/pkg/twwidth"

// Width is how many columns of a terminal a text takes; East Asian characters take two.
func Width(text string) int { return twwidth.Width(text) }
