package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// helpTopic is a page of `mqx help TOPIC` that belongs to no single command.
type helpTopic struct {
	name, short string
	write       func(w io.Writer)
}

var helpTopics = []helpTopic{
	{"exit-codes", "what the exit codes mean", writeExitCodes},
	{"output", "forms of output and what they hold", writeText(helpOutput)},
	{"match", "choosing rows: --match, --sort, --limit", writeText(helpMatch)},
	{"positions", "how times, positions and sizes are written", writeText(helpPositions)},
	{"contexts", "clusters by name, and where each value comes from", writeText(helpContexts)},
	{"environment", "environment variables, and what wins", writeText(helpEnvironment)},
	{"changes", "how changes are planned, confirmed and done", writeText(helpChanges)},
	{"plans", "plans that are kept, done later and taken back", writeText(helpPlans)},
	{"filters", "choosing messages: --tag, --where", writeText(helpFilters)},
	{"moving", "new brokers, restarts, and where queues lie", writeText(helpMoving)},
}

func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND... | TOPIC]",
		Short: "Help about a command or a topic",
		Args:  cobra.ArbitraryArgs,
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, _, err := c.Root().Find(args)
			if err != nil || at == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range at.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name())
				}
			}
			if len(args) == 0 {
				for _, t := range helpTopics {
					names = append(names, t.name)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				for _, t := range helpTopics {
					if t.name == args[0] {
						t.write(c.OutOrStdout())
						return nil
					}
				}
			}
			at, rest, err := c.Root().Find(args)
			if err == nil && len(rest) == 0 {
				at.InitDefaultHelpFlag()
				return at.Help()
			}
			var names []string
			for _, sub := range c.Root().Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name())
				}
			}
			for _, t := range helpTopics {
				names = append(names, t.name)
			}
			f := usagef("unknown command or help topic %q", strings.Join(args, " ")).because("no command and no topic has that name")
			if near := nearest(args[0], names); near != "" {
				return f.try("mqx help %s", near)
			}
			return f.try("mqx help")
		},
	}
}

func writeText(text string) func(io.Writer) {
	return func(w io.Writer) { fmt.Fprintln(w, strings.TrimSpace(text)) }
}

func writeExitCodes(w io.Writer) {
	fmt.Fprintln(w, "Exit codes of every command:")
	fmt.Fprintln(w)
	for _, m := range exitTable {
		fmt.Fprintf(w, "  %3d  %-12s %s\n", m.Code, m.Name, m.Meaning)
	}
	fmt.Fprintln(w, `
--dry-run exits with 0, with --exit-code with 6 when something would change.
A server that was told to stop (SIGTERM, SIGINT) and stopped in order exits with 0,
and so does mqx consume -f after SIGTERM; Ctrl-C ends it with 130.
-o nagios (doctor, lag get, store verify, wait) is the one form with codes of its own: 0 OK, 1 WARNING,
2 CRITICAL, 3 UNKNOWN, and one line that begins with that word.`)
}

const helpOutput = `
Every command that prints records has -o FORM:

  table        aligned columns on a terminal; on a pipe tab-separated text with
               one header line, no colour, full values and absolute times (default)
  wide         the same with all fields
  json         one document: {"apiVersion","kind","asOf","items":[…],"errors":[…]}
  ndjson       one JSON object a line
  yaml         the document of json as YAML
  csv          comma-separated, with a header line
  name         the name alone, one a line
  template=T   the Go template T for each record, as in template='{{.name}}'
  help         the fields, their types and meaning

Field names are stable. A value that nobody knows is null in json, ndjson and
yaml, "-" in tables and empty in csv; it is never 0 or -1. 64-bit numbers are
JSON numbers; --strings adds each of them once more as text (offset and
offsetString), for readers that lose digits above 2^53. In tab-separated text a
tab, a line end and a backslash inside a value are written \t, \n, \r and \\.

stdout carries data only. Errors and warnings go to stderr always; what was
understood, progress and hints only where stderr is a terminal, or with -v.
Ids and names are never cut on a narrow terminal. NO_COLOR and --color never
switch colour off.

When some brokers did not answer, the rows of the others are printed, each
missing broker is an entry of errors and a line on stderr, and the exit code is
3 (0 with --partial ok).`

const helpMatch = `
Lists take --match EXPR, --sort FIELD and --limit N; -o help names the fields.

  name=ORDERS              equal; != is not equal
  name~^ORD                the regular expression matches; !~ does not
  messages>=1000           < <= > >= for numbers, times (RFC 3339) and durations (5s)
  perm=rw && queues>4      both; || is either, && binds closer
  ORD                      a word alone: any field contains it

A value with blanks, && or || in it stands in quotes inside the expression.
--sort puts the largest number, time or size first, and text from A to Z; with a
minus before the field it is the other way round. Unknown values come last.`

const helpPositions = `
TIME       now · -15m, -2h, -3d (ago) · +10s (ahead) · 2026-01-02 ·
           2026-01-02T15:04:05 (local) · RFC 3339 · unix seconds or milliseconds,
           told apart by their length
POSITION   start · end · an offset · @TIME, as in --start @-2h
           --end is the first message that is not part of the range
SIZE       512, 4KiB, 1.5GiB (powers of 1024), 10MB (powers of 1000)
DURATION   300ms, 10s, 15m, 1h30m`

const helpContexts = `
A context is a cluster by name: name servers, TLS, keys, a store directory, marks.
mqx context add, ls, use, show, edit and rm keep them in contexts.json in
$XDG_CONFIG_HOME/mqx, else ~/.config/mqx; the file is yours alone (mode 0600).

Each value comes from the first of these that has it:
  1. the flag (-n, --access-key, --tls, ...)
  2. the context that --context or MQX_CONTEXT names
  3. the environment (mqx help environment)
  4. the current context (mqx context use NAME)
  5. the default: 127.0.0.1:9876, no keys, no TLS
mqx context show says which it was. Of the current context all but the name
servers counts only for a cluster that is its own.

Servers that are registered under addresses which cannot be reached from here (of
containers, behind NAT) are mapped: --map 172.17.0.3:10911=127.0.0.1:20911, or of a
host for all its ports, --map broker-a.internal=10.8.0.5; in a context likewise.

A secret is given as the place where it is found:
  env:NAME       a variable
  file:PATH      a file; its line end does not count
  cmd:COMMAND    what a command prints, as in 'cmd:pass show mqx/prod'
  text:SECRET    itself; on a command line everybody on the machine can see it

Marks belong to the cluster, however it is reached: they hold whenever one of its
name servers is one of the context's. read-only refuses every change, protected
makes every change ask for the name (--confirm NAME).`

const helpEnvironment = `
Name servers come from the first of these that is there: -n --namesrv, a context
that was named, MQX_NAMESRV, NAMESRV_ADDR, the current context, 127.0.0.1:9876.
Several stand with ; or , between them; quote a list with ; in it, or the shell
ends the command there. A broker takes them from -n, then from its configuration
file, then from a context that was named, then from MQX_NAMESRV or NAMESRV_ADDR.

  MQX_CONTEXT                   the context to use; see mqx help contexts
  MQX_NAMESRV, NAMESRV_ADDR     name servers
  MQX_ACCESS_KEY                access key that signs every request
  MQX_SECRET_KEY                secret key to it
  MQX_SECURITY_TOKEN            security token to it, if there is one
  MQX_TLS_KEY_PASSWORD          password of the key of --tls-key
                                each of these four also as NAME_FILE, which names a
                                file, or NAME_COMMAND, a command that prints it
  XDG_CONFIG_HOME, XDG_STATE_HOME   where contexts and the journal of changes are
  VISUAL, EDITOR                editor of mqx context edit
  ROCKETMQ_HOME                 mqx mqadmin takes keys from its conf/tools.yml
  NO_COLOR                      no colour, unless it is empty
  NOTIFY_SOCKET                 set by systemd; servers report their state there`

const helpChanges = `
A change is planned first and then done. The plan names cluster and context in its
first line. On a terminal it is shown and a question asked. Not on a terminal, the
command refuses (exit code 2) without --yes.

Destructive acts (rm) ask for the name: on a terminal it is typed, elsewhere
--confirm NAME answers; --yes does not. On a cluster that is marked protected
every change does (mqx help contexts).

--dry-run shows the plan and does nothing; with --exit-code it exits with 6 when
something would change. --plan-out FILE saves the plan and does nothing; mqx admin
plan apply FILE does it, unless what it rests on has changed (exit code 6).
--read-only, and the mark of that name, refuse every change. After the act mqx reads
back what it did, prints before and after, and one line that undoes it where
that can be. mqx admin undo --list shows what was changed from here, mqx admin undo
ID takes it back while the cluster still is as the change left it.`
