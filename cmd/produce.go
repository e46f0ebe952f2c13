package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/client"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
)

// produceOptions are the flags of mqx produce.
type produceOptions struct {
	target targetFlags
	output outputFlags

	broker     string
	queue      int32
	shard      string
	random     bool
	keys       []string
	tag        string
	properties []string
	batch      int
	retries    int
	delay, at  string
	confirm    string
	input      string
}

var sendSchema = render.Schema{Kind: "SendResultList", Name: "msgId", Fields: []render.Field{
	{Name: "topic", Doc: "topic the message was sent to"},
	{Name: "broker", Doc: "broker that stored it"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue it went into"},
	{Name: "queueOffset", Title: "OFFSET", Kind: render.Int, Doc: "its offset in that queue"},
	{Name: "status", Tone: render.ToneOf(map[string]render.Tone{"SEND_OK": render.Good}, render.Warn), Doc: "SEND_OK, or what the broker could not promise"},
	{Name: "msgId", Title: "MESSAGE ID", Whole: true, Doc: "unique id the client gave it"},
	{Name: "offsetMsgId", Title: "OFFSET ID", Wide: true, Whole: true, Doc: "id made of the broker's address and the position in its log"},
	{Name: "brokerAddr", Title: "ADDRESS", Wide: true, Doc: "address of the broker"},
	{Name: "tookMs", Title: "TOOK", Kind: render.Duration, Wide: true, Doc: "time the request took"},
}}

func newProduceCmd(a *app) *cobra.Command {
	o := &produceOptions{}
	c := &cobra.Command{
		Use:   "produce TOPIC [FILE | -]",
		Short: "Send each line of a file or of stdin as a message",
		Long: `A line is a message; its line end is not part of the body, and an empty line is
not sent. Each message is sent synchronously and printed with the place where it
was stored.`,
		Example: `  echo '{"id":1}' | mqx produce ORDERS --key 1 --tag created
  mqx produce ORDERS orders.ndjson --batch 100 -o ndjson > sent.ndjson
  mqx consume ORDERS -o ndjson | mqx produce COPY --input ndjson
  echo reminder | mqx produce MAILS --delay 10s
  seq 1000 | mqx produce ORDERS --shard customer-7 -o name
  tail -F app.log | mqx produce LOGS -n '10.0.0.1:9876;10.0.0.2:9876' -O /dev/null`,
		Args:              optionalArg("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE:              func(c *cobra.Command, args []string) error { return runProduce(a, c, o, args) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.broker, "broker", "b", "", "send to this broker only")
		f.Int32VarP(&o.queue, "queue", "q", 0, "send to this queue only")
		f.StringVar(&o.shard, "shard", "", "choose the queue by the hash of this key: equal keys, one queue")
		f.BoolVar(&o.random, "random", false, "choose a queue at random for each message, not in turn")
	})
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.keys, "key", nil, "key by which the message can be found; may be repeated")
		f.StringVar(&o.tag, "tag", "", "tag to filter by")
		f.StringArrayVar(&o.properties, "property", nil, "property as name=value; may be repeated")
		f.StringVar(&o.input, "input", inputLines, "what a line is: lines (a body) or ndjson (a message as mqx consume -o ndjson prints it)")
		f.IntVar(&o.batch, "batch", 1, "send this many messages in one request")
		f.IntVar(&o.retries, "retries", 2, "after a failure try this many other queues or brokers")
		f.StringVar(&o.delay, "delay", "", "deliver each message this long after the broker has it, as 10s or 2h")
		f.StringVar(&o.at, "at", "", "deliver at this time, as +10m or 2026-01-02T15:04:05")
	})
	o.output.add(c)
	addConfirm(c, &o.confirm, "the topic")
	completeFlag(c, "broker", completeBrokers(a, &o.target))
	return c
}

func hideFlags(c *cobra.Command, names ...string) {
	for _, n := range names {
		if err := c.Flags().MarkHidden(n); err != nil {
			panic(err)
		}
	}
}

func (o *produceOptions) check(c *cobra.Command) error {
	if o.input != inputLines && o.input != inputNDJSON {
		return notOneOf("--input", o.input, inputLines, inputNDJSON)
	}
	ways := 0
	for _, set := range []bool{c.Flags().Changed("queue"), o.shard != "", o.random} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		return usagef("cannot use more than one of --queue, --shard and --random: each of them chooses the queue").try("one of them")
	}
	if o.batch < 1 {
		return usagef("cannot use --batch %d: it must be at least 1", o.batch)
	}
	if o.retries < 0 {
		return usagef("cannot use --retries %d: it must not be negative", o.retries)
	}
	if c.Flags().Changed("queue") && o.queue < 0 {
		return usagef("cannot use --queue %d: it must not be negative", o.queue)
	}
	return nil
}

// prototype is the message that every line becomes a copy of.
func (o *produceOptions) prototype(topic string) (*message.Message, error) {
	m := &message.Message{Topic: topic}
	for _, p := range o.properties {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usagef("cannot read property %q: it has the form name=value", p).try("--property colour=red")
		}
		if value == "" {
			return nil, usagef("cannot send property %q: an empty value does not arrive", name)
		}
		m.SetProperty(name, value)
	}
	if len(o.keys) > 0 {
		m.SetKeys(o.keys...)
	}
	if o.tag != "" {
		m.SetTags(o.tag)
	}
	if o.shard != "" {
		m.SetProperty(message.PropShardingKey, o.shard)
	}
	if err := m.Validate(); err != nil {
		return nil, usagef("%w", err)
	}
	return m, nil
}

func runProduce(a *app, c *cobra.Command, o *produceOptions, args []string) error {
	if err := o.check(c); err != nil {
		return err
	}
	proto, err := o.prototype(args[0])
	if err != nil {
		return err
	}
	due, err := o.when(c, time.Now())
	if err != nil {
		return err
	}
	if due != nil {
		proto.SetProperty(due.property, due.value)
	}
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	form, _, err := render.ParseForm(o.output.form)
	if err != nil {
		return usagef("%w", err)
	}
	w, err := a.renderer(out, &o.output, sendSchema, form != render.FormJSON && form != render.FormYAML)
	if err != nil {
		return err
	}
	if w.Help() {
		return w.Close()
	}
	if err := a.mayWrite(&o.target, o.confirm, args[0]); err != nil {
		return err
	}
	in, closeIn, err := a.input(args[1:])
	if err != nil {
		return err
	}
	defer closeIn()
	cfg, err := a.clientConfig(c.Context(), &o.target)
	if err != nil {
		return err
	}
	p, err := client.NewProducer(client.ProducerConfig{Config: cfg, Retries: &o.retries})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // all sends have been answered
	if due != nil {
		a.note("%s", due.said)
	}
	ctx, cancel := a.deadline(c, false)
	defer cancel()
	s := &sender{a: a, p: p, w: w, proto: proto, batch: o.batch, input: o.input, to: client.SendOptions{
		Broker: o.broker, QueueID: o.queue, HasQueue: c.Flags().Changed("queue"), ShardKey: o.shard, Random: o.random,
	}}
	err = s.all(ctx, in)
	err = errors.Join(a.withTimeout(ctx, err), w.Close(), closeOut())
	switch {
	case err == nil && s.sent == 0:
		a.warn("there was no line to send")
	case s.sent > 0:
		a.note("%s sent", words.Count(int64(s.sent), "message"))
	}
	if err == nil && s.unsure > 0 {
		return failf(ExitPartial, "%d of %d messages are stored, but the broker could not promise what was asked for", s.unsure, s.sent).
			because("see their status: FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT or SLAVE_NOT_AVAILABLE")
	}
	return err
}

// batchIdle is how long a batch that is not full waits for one more line.
const batchIdle = 50 * time.Millisecond

// sender sends lines as messages.
type sender struct {
	a     *app
	p     *client.Producer
	w     *render.Writer
	proto *message.Message
	batch int
	input string
	to    client.SendOptions

	pending []*message.Message
	sent    int
	unsure  int // stored without the durability asked for
}

// all sends the lines of in. It does not wait for a line longer than ctx lasts,
// nor does a started batch wait for lines that do not come.
func (s *sender) all(ctx context.Context, in io.Reader) error {
	lines := readLines(ctx, in)
	for {
		var idle <-chan time.Time
		if len(s.pending) > 0 {
			idle = time.After(batchIdle)
		}
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-idle:
			err = s.flush(ctx)
		case line := <-lines:
			if line.err != nil {
				err := s.flush(ctx)
				if errors.Is(line.err, io.EOF) {
					return err
				}
				return errors.Join(err, line.err)
			}
			err = s.take(ctx, line)
		}
		if err != nil {
			return err
		}
	}
}

// take makes a message of a line, and sends when the batch is full.
func (s *sender) take(ctx context.Context, line inputLine) error {
	if len(line.text) == 0 {
		s.a.warn("line %d is empty and was not sent", line.number)
		return nil
	}
	m, err := s.message(line)
	if err != nil {
		return err
	}
	s.pending = append(s.pending, m)
	if len(s.pending) < s.batch {
		return nil
	}
	return s.flush(ctx)
}

func (s *sender) flush(ctx context.Context) error {
	if len(s.pending) == 0 {
		return nil
	}
	ms := s.pending
	s.pending = nil
	var r client.SendResult
	var err error
	if s.batch > 1 {
		r, err = s.p.SendBatch(ctx, ms, s.to)
	} else {
		r, err = s.p.Send(ctx, ms[0], s.to)
	}
	if err != nil {
		return fmt.Errorf("cannot send message %d: %w", s.sent+1, err)
	}
	return s.print(ms, r)
}

// print prints where each message of one request went. The ids of a batch come
// as one text with commas, in the order of the messages.
func (s *sender) print(ms []*message.Message, r client.SendResult) error {
	ids := strings.Split(r.MessageID, ",")
	offsetIDs := strings.Split(r.OffsetID, ",")
	at := func(list []string, i int) any {
		if i < len(list) && list[i] != "" {
			return list[i]
		}
		return nil
	}
	for i, m := range ms {
		s.sent++
		if r.Status != client.SendOK {
			s.unsure++
		}
		err := s.w.Row(m.Topic, r.Queue.BrokerName, r.Queue.QueueID, r.QueueOffset+int64(i), sendStatusName(r.Status), at(ids, i), at(offsetIDs, i), r.Broker, r.Took)
		if err != nil {
			return err
		}
	}
	return nil
}

func sendStatusName(s client.SendStatus) string {
	switch s {
	case client.SendOK:
		return "SEND_OK"
	case client.SendFlushDiskTimeout:
		return remoting.ResponseName(remoting.RespFlushDiskTimeout)
	case client.SendFlushSlaveTimeout:
		return remoting.ResponseName(remoting.RespFlushSlaveTimeout)
	case client.SendSlaveNotAvailable:
		return remoting.ResponseName(remoting.RespSlaveNotAvailable)
	}
	return fmt.Sprintf("STATUS_%d", int(s))
}
