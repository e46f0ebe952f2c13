package cmd

import (
	"strings"

	"github.com/spf13/cobra"
)

// mqadminHints are commands of Apache's mqadmin and what does the same here today.
var mqadminHints = map[string]string{
	"topiclist":           "mqx admin topic ls",
	"topicstatus":         "mqx admin topic get TOPIC",
	"topicroute":          "mqx admin topic get TOPIC --show config",
	"updatetopic":         "mqx admin topic create TOPIC",
	"deletetopic":         "mqx admin topic rm TOPIC",
	"consumerprogress":    "mqx admin group get GROUP",
	"consumerconnection":  "mqx admin group get GROUP --show members",
	"sendmessage":         "mqx produce TOPIC",
	"consumemessage":      "mqx consume TOPIC",
	"printmsg":            "mqx consume TOPIC",
	"printmsgbyqueue":     "mqx consume TOPIC -b BROKER -q QUEUE",
	"querymsgbyoffset":    "mqx consume TOPIC -b BROKER -q QUEUE --start OFFSET --count 1",
	"startmonitoring":     "mqx admin group get GROUP --watch",
	"checkmsgsendrt":      "mqx bench produce",
	"getconsumerconfig":   "mqx admin group get GROUP --show config",
	"updatetopicperm":     "mqx admin topic create TOPIC --perm PERM",
	"querymsgbyuniquekey": "mqx consume TOPIC --match msgId=ID",
	"querymsgbykey":       "mqx consume TOPIC --match keys=KEY",
}

// newMqadminCmd is what Apache's spelling is answered with until it is served.
func newMqadminCmd() *cobra.Command {
	return &cobra.Command{
		Use:                "mqadmin COMMAND",
		Short:              "Apache's spelling of the admin commands (not there yet)",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("the commands of mqadmin are not there yet").try("mqx admin --help")
			}
			f := failf(ExitFailed, "the mqadmin command %q is not there yet", args[0]).
				because("mqx has commands of its own for topics, groups and messages; Apache's mqadmin works against mqx as it is")
			if hint := mqadminHints[strings.ToLower(args[0])]; hint != "" {
				return f.try("%s", hint)
			}
			return f.try("mqx admin --help")
		},
	}
}
