package cmd

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/message"
)

var traceSchema = render.Schema{Kind: "TraceList", Name: "msgId", Fields: []render.Field{
	{Name: "time", Kind: render.Time, Doc: "when it was sent, or consuming began or ended"},
	{Name: "type", Doc: "Pub, SubBefore, SubAfter, EndTransaction or Recall"},
	{Name: "group", Doc: "producer or consumer group"},
	{Name: "client", Whole: true, Doc: "host of the client"},
	{Name: "costMs", Title: "TOOK", Kind: render.Duration, Doc: "time the send or the consuming took"},
	{Name: "success", Kind: render.Bool, Tone: enabled, Doc: "how it ended; unknown before the end"},
	{Name: "retries", Kind: render.Int, Doc: "how often it had been given back before"},
	{Name: "code", Wide: true, Doc: "of consuming: success, timeout, exception, null or failed"},
	{Name: "topic", Wide: true, Doc: "topic it was sent to"},
	{Name: "tag", Wide: true, Doc: "tag"},
	{Name: "keys", Kind: render.List, Wide: true, Doc: "keys"},
	{Name: "msgId", Title: "MESSAGE ID", Wide: true, Whole: true, Doc: "unique id"},
	{Name: "offsetMsgId", Title: "OFFSET ID", Wide: true, Whole: true, Doc: "offset id"},
	{Name: "storeHost", Wide: true, Doc: "broker that stored it"},
	{Name: "bodySize", Kind: render.Size, Wide: true, Doc: "size of the body as it was sent"},
	{Name: "messageType", Wide: true, Doc: "Normal_Msg, Trans_Msg_Half, Trans_msg_Commit, Delay_Msg, Order_Msg"},
	{Name: "transactionId", Wide: true, Doc: "transaction"},
	{Name: "transactionState", Wide: true, Doc: "COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW, as clients spell it"},
	{Name: "region", Wide: true, Doc: "region"},
}}

func newTraceCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "trace", Aliases: []string{"traces"}, Short: "What clients noted of messages",
		Example: "  mqx admin trace get C0000202270B4E0E2F2A9530AA7E0022",
	}, newTraceGetCmd(a))
}

// traceGetOptions are the flags of mqx admin trace get.
type traceGetOptions struct {
	target     targetFlags
	output     outputFlags
	topic      string
	start, end string
	max        int
	redact     bool
}

func newTraceGetCmd(a *app) *cobra.Command {
	o := &traceGetOptions{}
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Show who sent and who consumed a message, as their clients noted it",
		Long: `Clients with tracing switched on note each send and each consuming in a topic. ID is the
unique id of the message, or a key: then the trace of every message that has it is shown.`,
		Example: `  mqx admin trace get C0000202270B4E0E2F2A9530AA7E0022
  mqx admin trace get order-4711 --start @-1d -o json
  mqx admin trace get order-4711 --trace-topic MY_TRACE --match type=SubAfter`,
		Args: exactArgs("ID"),
		RunE: func(c *cobra.Command, args []string) error { return runTraceGet(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVar(&o.topic, "trace-topic", message.TopicTrace, "topic that the clients note in")
	})
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.StringVar(&o.start, "start", "", "only what was noted since: @TIME")
		f.StringVar(&o.end, "end", "", "only what was noted before: @TIME")
	})
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.IntVar(&o.max, "max", admin.DefaultQueryMax, "ask each broker for this many messages of the trace topic")
	})
	o.output.addRows(c)
	o.output.add(c)
	grouped(c, groupOutput, func(f *pflag.FlagSet) { f.BoolVar(&o.redact, "redact", false, "hide tags and keys of messages") })
	return c
}

func runTraceGet(a *app, c *cobra.Command, o *traceGetOptions, id string) error {
	find := messageFindOptions{sel: messageSelection{start: o.start, end: o.end}}
	begin, end, err := find.times()
	if err != nil {
		return err
	}
	if o.max < 1 || o.max > 10_000 {
		return usagef("cannot use --max %d: 1 to 10000 are possible", o.max)
	}
	ac, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = ac.Close() }()
	return a.list(c, &o.output, traceSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		t, err := ac.GetTrace(ctx, admin.TraceQuery{ID: id, Topic: o.topic, Begin: begin, End: end, Max: o.max})
		if err != nil {
			return nil, noTrace(err)
		}
		a.tellAsked(t.Asked)
		if err := allFailed(len(t.Records), t.Errors); err != nil {
			return nil, err
		}
		if t.More {
			a.warn("some broker gave %s, and may have more: --max", words.Count(o.max, "message"))
		}
		for i := range t.Records {
			if o.redact {
				t.Records[i].Tags, t.Records[i].Keys = hiddenWords(t.Records[i].Tags), hiddenWords(t.Records[i].Keys)
			}
			if err := w.Row(traceRow(&t.Records[i])...); err != nil {
				return nil, err
			}
		}
		missing := targetProblems(t.Errors)
		if t.Broken != nil {
			missing = append(missing, render.Problem{Target: "trace data", Message: t.Broken.Error()})
		}
		return missing, nil
	})
}

// hiddenWords hides each of the words of a text.
func hiddenWords(text string) string {
	words := strings.Fields(text)
	for i := range words {
		words[i] = hidden
	}
	return strings.Join(words, " ")
}

func noTrace(err error) error {
	f := asFailure(noMessage(err))
	if _, topic := errors.AsType[*admin.NotFoundError](err); topic {
		f.Why = "no broker has the trace topic: traceTopicEnable makes it, or a client has one of its own"
	}
	if f.Code == ExitNotFound {
		f.Try = "mqx admin message track ID, which needs no trace"
	}
	return f
}

var traceCodes = [...]string{"success", "timeout", "exception", "null", "failed"}

func traceRow(r *admin.TraceRecord) []any {
	var cost, success, retries, code, size any
	if r.Cost != nil {
		cost = *r.Cost
	}
	if r.Success != nil {
		success = *r.Success
	}
	if r.Retries != nil {
		retries = *r.Retries
	}
	if r.Code != nil && *r.Code >= 0 && int(*r.Code) < len(traceCodes) {
		code = traceCodes[*r.Code]
	}
	if r.Type == admin.TracePub {
		size = r.BodySize
	}
	return []any{
		r.Time, r.Type, orUnknown(r.Group), orUnknown(r.ClientHost), cost, success, retries, code, orUnknown(r.Topic), orUnknown(r.Tags),
		listOf(strings.Fields(r.Keys)), r.MsgID, orUnknown(r.OffsetID), orUnknown(r.StoreHost), size, orUnknown(r.MsgType), orUnknown(r.TransactionID),
		orUnknown(r.TransactionState), orUnknown(r.Region),
	}
}
