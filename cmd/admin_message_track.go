package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/message"
)

var trackSchema = render.Schema{Kind: "MessageTrackList", Name: "group", Fields: []render.Field{
	{Name: "group", Doc: "consumer group"},
	{
		Name: "state", Tone: render.ToneOf(map[string]render.Tone{string(admin.TrackConsumed): render.Good, string(admin.TrackDeadLetter): render.Bad, string(admin.TrackUnknown): render.Bad}, render.Warn),
		Doc: "CONSUMED, NOT_CONSUMED_YET, FILTERED, BROADCAST, PULL, POP, RETRYING, DEAD_LETTER, UNKNOWN",
	},
	{Name: "detail", Doc: "what the state rests on"},
	{Name: "online", Kind: render.Bool, Doc: "a member of the group is there"},
	{Name: "type", Wide: true, Doc: "push, pull or pop; unknown when nobody is online"},
	{Name: "model", Wide: true, Doc: "clustering or broadcasting; unknown when nobody is online"},
	{Name: "offset", Kind: render.Int, Wide: true, Doc: "committed offset of the group in the queue of the message; unknown when there is none"},
	{Name: "retries", Kind: render.Int, Doc: "how often the group gave it back; unknown when not everybody answered"},
	{Name: "topic", Wide: true, Doc: "topic of the message"},
	{Name: "msgId", Wide: true, Whole: true, Doc: "its unique id, else its offset id"},
	{Name: "error", Wide: true, Doc: "what could not be asked"},
}}

// messageTrackOptions are the flags of mqx admin message track.
type messageTrackOptions struct {
	target targetFlags
	output outputFlags
	topic  string
	groups []string
}

func newMessageTrackCmd(a *app) *cobra.Command {
	o := &messageTrackOptions{}
	c := &cobra.Command{
		Use:   "track ID",
		Short: "Show what became of a message in each group",
		Long: `Asks for every group that consumes the topic, online or not, whether it is past the message,
wants it at all, has given it back, or has it among its dead letters. ID is as in
mqx admin message get.

The states: CONSUMED; NOT_CONSUMED_YET; FILTERED (its subscription does not take it); BROADCAST
(each member keeps its own offsets); PULL (a pull consumer that commits nothing); POP (handed
out, and not given back); RETRYING; DEAD_LETTER; UNKNOWN (somebody did not answer).`,
		Example: `  mqx admin message track 7F000001000077C80000000000000000
  mqx admin message track broker-a:3:4711 -t ORDERS -g billing -o json`,
		Args: exactArgs("ID"),
		RunE: func(c *cobra.Command, args []string) error { return runMessageTrack(a, c, o, args[0]) },
	}
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		o.target.add(f)
		f.StringVarP(&o.topic, "topic", "t", "", "topic of the message")
		f.StringArrayVarP(&o.groups, "group", "g", nil, "only this group; may be repeated")
	})
	o.output.addRows(c)
	o.output.add(c)
	o.output.addWatch(c)
	completeFlag(c, "topic", completeTopics(a, &o.target))
	completeFlag(c, "group", completeGroups(a, &o.target))
	return c
}

func runMessageTrack(a *app, c *cobra.Command, o *messageTrackOptions, id string) error {
	ref, err := admin.ParseMessageRef(id, o.topic)
	if err != nil {
		return noMessage(err)
	}
	ac, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = ac.Close() }()
	return a.list(c, &o.output, trackSchema, func(ctx context.Context, w *render.Writer) (problems, error) {
		m, errs, err := oneMessage(ctx, a, ac, ref)
		if err != nil {
			return nil, err
		}
		tracks, more, err := ac.Track(ctx, m, o.groups...)
		if err != nil {
			return nil, err
		}
		missing := targetProblems(append(errs, more...))
		for _, t := range tracks {
			var failed, retries, offset any
			if t.Err != nil {
				failed = t.Err.Error()
				missing = append(missing, render.Problem{Target: "group " + t.Group, Message: t.Err.Error()})
			}
			if t.Retries != nil {
				retries = *t.Retries
			}
			if t.Committed != nil {
				offset = *t.Committed
			}
			if err := w.Row(t.Group, string(t.State), t.Detail, t.Online, orUnknown(consumeTypeName(t.Type)), orUnknown(modelName(t.Model)), offset, retries, m.Topic, m.MessageID, failed); err != nil {
				return missing, err
			}
		}
		if len(tracks) == 0 && len(missing) == 0 {
			a.warn("no group consumes topic %s", m.Topic)
		}
		return missing, nil
	})
}

// oneMessage is the message that ref names: of several records the one that was sent, not those of retries.
func oneMessage(ctx context.Context, a *app, c *admin.Client, ref admin.MessageRef) (*client.Received, []admin.TargetError, error) {
	f, err := c.GetMessage(ctx, ref)
	if err != nil {
		return nil, nil, noMessage(err)
	}
	a.tellAsked(f.Asked)
	if len(f.Messages) == 0 {
		return nil, nil, f.Errors[0]
	}
	best := f.Messages[0] // the oldest
	for _, m := range f.Messages {
		if !message.IsRetry(m.Topic) && !message.IsDLQ(m.Topic) && m.Topic != message.TopicSchedule {
			best = m
			break
		}
	}
	if len(f.Messages) > 1 {
		a.note("%s this id; meant is %s", words.Count(len(f.Messages), "record has", "records have"), fmt.Sprintf("%s:%d:%d of topic %s", best.Queue.BrokerName, best.Queue.QueueID, best.QueueOffset, best.Topic))
	}
	return best, f.Errors, nil
}

// modelName is the message model of a group as mqx writes it.
func modelName(wire string) string { return strings.ToLower(wire) }
