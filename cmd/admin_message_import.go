package cmd

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/message"
	"mqx/remoting"
)

// messageImportOptions are the flags of mqx admin message import.
type messageImportOptions struct {
	copyOptions
	sourceTopic string
}

func newMessageImportCmd(a *app) *cobra.Command {
	o := &messageImportOptions{}
	c := &cobra.Command{
		Use:   "import TOPIC [FILE | -]",
		Short: "Send the messages of an NDJSON file to a topic as they were",
		Long: `Takes what mqx admin message export and mqx store export write: a message a line. Body, keys,
tag, properties, unique id, flag, born time and compression are kept, and what was in one queue
comes into the same queue where the topic has it. Store times and hosts are those of this
cluster. (mqx produce --input ndjson makes new messages of the same lines.)

A file with messages of several topics needs --source-topic. Ctrl-C ends it after the messages
that are under way; --state FILE goes on where it ended, and sends nothing twice.`,
		Example: `  mqx admin message import ORDERS orders.ndjson --yes
  gunzip -c eu.ndjson.gz | mqx admin message import ORDERS --rate 1000 --state eu.state --yes
  mqx admin message import ORDERS_TEST orders.ndjson --where "region = 'eu'" --new-ids --yes`,
		Args:              optionalArg("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runMessageImport(a, c, o, args) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.sourceTopic, "source-topic", "", "only lines of this topic")
	})
	o.sel.addFilters(c)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.BoolVar(&o.newIDs, "new-ids", false, "give the messages new unique ids")
	})
	o.addCopy(c)
	return c
}

func runMessageImport(a *app, c *cobra.Command, o *messageImportOptions, args []string) error {
	if err := o.check(c); err != nil {
		return err
	}
	if o.safety.planOut != "" {
		return usagef("cannot save the plan of an import: the lines are not in it").try("--dry-run")
	}
	name := "stdin"
	if len(args) > 1 && args[1] != "-" {
		name = args[1]
	} else if !o.safety.planOnly() && !o.safety.yes && o.safety.confirm == "" {
		return usagef("cannot ask: stdin has the messages").try("--yes")
	}
	in, closeIn, err := a.input(args[1:])
	if err != nil {
		return err
	}
	defer closeIn()
	spec := o.spec("")
	spec.To, spec.File = args[0], name
	lines := &lineImport{in: in, topic: o.sourceTopic, only: o.sourceTopic != ""}
	return o.change(a, c, &o.target, spec, admin.CopyOptions{Lines: lines.read})
}

// maxImportLine bounds a line: a body of 64 MiB in base64, and its properties.
const maxImportLine = 100 << 20

// lineImport reads messages from lines.
type lineImport struct {
	in    io.Reader
	topic string // that the lines must have; found in the first one
	only  bool   // lines of other topics are passed over
}

func (l *lineImport) read(ctx context.Context, f func(n int64, m *client.Received) error) error {
	s := bufio.NewScanner(l.in)
	s.Buffer(make([]byte, 0, 64<<10), maxImportLine)
	for n := int64(1); s.Scan(); n++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(s.Bytes()) == 0 {
			continue
		}
		line, err := message.ParseLine(s.Bytes())
		if err != nil {
			return usagef("cannot import line %d: %w", n, err).try("mqx admin message export TOPIC shows the form")
		}
		if l.topic == "" {
			l.topic = line.Topic
		}
		if line.Topic != l.topic {
			if l.only {
				continue
			}
			return usagef("cannot import line %d: it is of topic %q, those before are of topic %q", n, line.Topic, l.topic).because("messages of two topics would get mixed up").try("--source-topic %s", l.topic)
		}
		if err := f(n, receivedLine(&line)); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("cannot read messages: %w", err)
	}
	return nil
}

// receivedLine is a line as the message that it was made of.
func receivedLine(l *message.Line) *client.Received {
	m := message.Received{
		Message: message.Message{Topic: l.Topic, Flag: l.Flag, Body: l.Body, Properties: l.Properties}, SysFlag: l.SysFlag, BornTimestamp: l.BornTimestamp,
		BornHost: l.BornHost, StoreTimestamp: l.StoreTimestamp, StoreHost: l.StoreHost, ReconsumeTimes: l.ReconsumeTimes,
	}
	if l.QueueID != nil {
		m.QueueID = *l.QueueID
	}
	if l.QueueOffset != nil {
		m.QueueOffset = *l.QueueOffset
	}
	return client.NewReceived(m, remoting.MessageQueue{Topic: l.Topic, QueueID: m.QueueID})
}
