package tui

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"

	"mqx/internal/render"
)

// Theme gives the tones colours. A colour that the terminal does not have becomes the
// nearest that it has; none carries a meaning that the text has not as well.
type Theme struct {
	Name  string
	tones map[render.Tone]lipgloss.Style
	bold  lipgloss.Style
	plain bool // neither colours nor bold
}

func theme(name string, good, warn, bad, accent, dim color.Color) *Theme {
	style := func(c color.Color) lipgloss.Style { return lipgloss.NewStyle().Foreground(c) }
	t := &Theme{Name: name, bold: lipgloss.NewStyle().Bold(true), tones: map[render.Tone]lipgloss.Style{
		render.Good: style(good), render.Warn: style(warn), render.Bad: style(bad), render.Accent: style(accent),
	}}
	t.tones[render.Dim] = lipgloss.NewStyle().Faint(true)
	if dim != nil {
		t.tones[render.Dim] = style(dim)
	}
	return t
}

// themes are those that t goes through; the first is the default: the sixteen colours
// that every terminal has, as its owner has set them.
var themes = []*Theme{
	theme("terminal", lipgloss.Green, lipgloss.Yellow, lipgloss.Red, lipgloss.Cyan, nil),
	theme("dark", lipgloss.Color("#7ec699"), lipgloss.Color("#e5c07b"), lipgloss.Color("#ff6b6b"), lipgloss.Color("#7aa2f7"), lipgloss.Color("#8a8f98")),
	theme("light", lipgloss.Color("#1a7f37"), lipgloss.Color("#8a5a00"), lipgloss.Color("#b42318"), lipgloss.Color("#0550ae"), lipgloss.Color("#6a737d")),
	// Blue and orange, which those see as different who cannot tell red from green.
	theme("colorblind", lipgloss.Color("#0072b2"), lipgloss.Color("#e69f00"), lipgloss.Color("#d55e00"), lipgloss.Color("#56b4e9"), lipgloss.Color("#8a8f98")),
	{Name: "mono", plain: true},
}

// ThemeNames are the names of the themes.
func ThemeNames() []string {
	out := make([]string, len(themes))
	for i, t := range themes {
		out[i] = t.Name
	}
	return out
}

// themeNamed is the theme of a name, nil where there is none.
func themeNamed(name string) *Theme {
	for _, t := range themes {
		if name != "" && strings.HasPrefix(t.Name, name) {
			return t
		}
	}
	return nil
}

func mono() *Theme { return themes[len(themes)-1] }

func (t *Theme) paint(text string, tone render.Tone) string {
	if t.plain || text == "" || tone == render.Plain {
		return text
	}
	return t.tones[tone].Render(text)
}

func (t *Theme) strong(text string) string {
	if t.plain || text == "" {
		return text
	}
	return t.bold.Render(text)
}
