package cmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/internal/render"
	"mqx/remoting"
)

type codebookOptions struct {
	output outputFlags
	lang   string
}

var explainSchema = render.Schema{Kind: "ExplanationList", Name: "name", Fields: []render.Field{
	{Name: "code", Kind: render.Int, Doc: "response code; unknown for a text that comes with several"},
	{Name: "name", Doc: "name of the code, or the part of the text that was found"},
	{Name: "meaning", Whole: true, Doc: "what it means"},
	{Name: "try", Whole: true, Doc: "what to do about it"},
}}

// languages of mqx explain.
var languages = []string{"en", "zh"}

func newExplainCmd(a *app) *cobra.Command {
	o := &codebookOptions{}
	c := &cobra.Command{
		Use:   "explain CODE|TEXT...",
		Short: "Explain a response code or what a broker answers",
		Long: `Says what a response code means and what to do, by its number, its name, or a part of
the name; and what the texts mean that brokers answer and clients print. A text is best
given as it stands in the log: codes in it (CODE: 17) are explained as well.

--lang zh explains in Chinese, which is the default where LC_ALL, LC_MESSAGES or LANG
begins with zh. --all lists every code. What is not known is exit code 7.`,
		Example: `  mqx explain 14
  mqx explain TOPIC_NOT_EXIST --lang zh
  mqx explain '[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while'
  mqx explain --all -o json`,
		RunE: func(c *cobra.Command, args []string) error { return o.run(a, c, strings.Join(args, " ")) },
	}
	all := false
	grouped(c, groupOutput, func(f *pflag.FlagSet) {
		f.StringVar(&o.lang, "lang", "", "language: en or zh")
		f.BoolVar(&all, "all", false, "list every response code")
	})
	o.output.add(c)
	completeFlag(c, "lang", cobra.FixedCompletions(languages, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *codebookOptions) run(a *app, c *cobra.Command, text string) error {
	switch {
	case o.lang == "":
		o.lang = a.language()
	case !slices.Contains(languages, o.lang):
		return notOneOf("--lang", o.lang, languages...)
	}
	all := c.Flags().Changed("all")
	if text == "" && !all && !o.output.help() {
		return usagef("cannot explain nothing: a code or a text is missing").try("mqx explain 14")
	}
	return a.printRows(&o.output, explainSchema, func() ([][]any, error) {
		rows := explainText(text, o.lang)
		if all {
			rows = nil
			for i := range codebook {
				rows = append(rows, codebook[i].row(o.lang))
			}
		}
		if len(rows) == 0 {
			return nil, failf(ExitNotFound, "cannot explain %q", text).because("it is no response code, and no text that is known").try("mqx explain --all")
		}
		return rows, nil
	})
}

// language is the one that the environment asks for.
func (a *app) language() string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := a.env(name); v != "" {
			if strings.HasPrefix(v, "zh") {
				return "zh"
			}
			break
		}
	}
	return "en"
}

func (s said) in(lang string) string {
	if lang == "zh" {
		return s.zh
	}
	return s.en
}

func (e *codeEntry) row(lang string) []any {
	return []any{e.code, remoting.ResponseName(e.code), e.meaning.in(lang), e.todo.in(lang)}
}

// explainText finds a text by its number, its name, or what stands in it.
func explainText(text, lang string) (rows [][]any) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return explainCode(int32(n), lang)
	}
	upper := strings.ToUpper(strings.ReplaceAll(text, " ", "_"))
	for i := range codebook {
		if remoting.ResponseName(codebook[i].code) == upper {
			return [][]any{codebook[i].row(lang)}
		}
	}
	lower := strings.ToLower(text)
	for i := range remarks {
		// What stands in brackets is also asked for without them.
		if part := remarks[i].part; strings.Contains(lower, part) || lower == strings.Trim(part, "[]") {
			rows = append(rows, []any{nil, remarks[i].part, remarks[i].meaning.in(lang), remarks[i].todo.in(lang)})
			break
		}
	}
	for i := range codebook {
		e := &codebook[i]
		// As Java's clients and mqadmin write it: CODE: 17  DESC: …
		if mentions(lower, fmt.Sprintf("code: %d", e.code)) || mentions(lower, fmt.Sprintf("code=%d", e.code)) || strings.Contains(strings.ToUpper(text), remoting.ResponseName(e.code)) {
			rows = append(rows, e.row(lang))
		}
	}
	if len(rows) > 0 || len(upper) < 4 {
		return rows
	}
	for i := range codebook { // a part of a name
		if strings.Contains(remoting.ResponseName(codebook[i].code), upper) {
			rows = append(rows, codebook[i].row(lang))
		}
	}
	return rows
}

func explainCode(code int32, lang string) [][]any {
	i := slices.IndexFunc(codebook, func(e codeEntry) bool { return e.code == code })
	if i < 0 {
		return nil
	}
	return [][]any{codebook[i].row(lang)}
}

// mentions reports whether a text has a part that no digit follows.
func mentions(text, part string) bool {
	i := strings.Index(text, part)
	if i < 0 {
		return false
	}
	rest := text[i+len(part):]
	return rest == "" || rest[0] < '0' || rest[0] > '9'
}
