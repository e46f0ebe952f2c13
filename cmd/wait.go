package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/internal/words"
	"mqx/remoting"
)

func newWaitCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use:   "wait",
		Short: "Block until something is so",
		Example: `  mqx wait lag -g billing -t ORDERS --below 1000 --within 15m
  mqx wait broker broker-b --within 2m && mqx admin topic ls -b broker-b
  mqx wait topic ORDERS --brokers 3 --within 1m`,
	}, newWaitLagCmd(a), newWaitTopicCmd(a), newWaitBrokerCmd(a), newWaitGroupCmd(a))
}

var waitSchema = render.Schema{Kind: "WaitList", Name: "name", Fields: []render.Field{
	{Name: "what", Doc: "what was waited for: lag, topic, broker or group"},
	{Name: "name", Doc: "its name"},
	{Name: "condition", Doc: "what was to be so"},
	{Name: "met", Kind: render.Bool, Tone: enabled, Doc: "it is so"},
	{Name: "state", Doc: "what was seen last"},
	{Name: "waited", Kind: render.Duration, Doc: "time that passed, in ms"},
	{Name: "looks", Kind: render.Int, Wide: true, Doc: "how often it was looked at"},
}}

const (
	defaultWithin   = 5 * time.Minute
	defaultInterval = time.Second
)

// waitOptions are the flags that every mqx wait has.
type waitOptions struct {
	target   targetFlags
	output   outputFlags
	within   time.Duration
	interval time.Duration
}

func (o *waitOptions) add(c *cobra.Command) {
	o.within, o.interval = defaultWithin, defaultInterval
	grouped(c, groupTarget, func(f *pflag.FlagSet) { o.target.add(f) })
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.Var(durationFlag{&o.within}, "within", "give up after this time, with exit code 8")
		f.Var(durationFlag{&o.interval}, "interval", "time between two looks")
	})
	o.output.add(c)
	offersNagios(c)
}

// wait is one thing to wait for.
type wait struct {
	what, name, condition string
	// look says whether it is so, and what there is. An error is what keeps it from
	// being looked at: the next look may see it.
	look func(ctx context.Context, client *admin.Client) (met bool, state string, err error)
}

// run looks until it is so or the time is over.
func (o *waitOptions) run(a *app, c *cobra.Command, w wait) error {
	if o.output.help() {
		return o.print(a, w, false, "", 0, 0)
	}
	if o.within <= 0 || o.interval <= 0 {
		return usagef("cannot wait within %s with looks every %s: both must be more than nothing", o.within, o.interval).try("--within 15m")
	}
	client, err := a.adminClient(c.Context(), &o.target)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	start := time.Now()
	ctx, cancel := context.WithTimeout(c.Context(), o.within)
	defer cancel()
	last := ""
	for looks := 1; ; looks++ {
		met, state, err := o.lookOnce(ctx, a, client, w)
		if err != nil {
			if f := asFailure(err); c.Context().Err() != nil || f.Code == ExitUsage || f.Code == ExitDenied {
				return err
			}
			met, state = false, oneLine(err.Error())
		}
		if state != "" && (ctx.Err() == nil || last == "") {
			if state != last {
				a.note("%s %s: %s", w.what, w.name, state)
			}
			last = state
		}
		if met {
			return o.print(a, w, true, last, time.Since(start), looks)
		}
		select {
		case <-ctx.Done():
			if c.Context().Err() != nil {
				return context.Cause(c.Context())
			}
			return o.print(a, w, false, last, time.Since(start), looks)
		case <-time.After(o.interval):
		}
	}
}

// lookOnce looks within --timeout.
func (o *waitOptions) lookOnce(ctx context.Context, a *app, client *admin.Client, w wait) (bool, string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.global.timeout)
	defer cancel()
	return w.look(ctx, client)
}

// print prints the outcome and makes the exit code.
func (o *waitOptions) print(a *app, w wait, met bool, state string, waited time.Duration, looks int) error {
	out, closeOut, err := a.open(&o.output)
	if err != nil {
		return err
	}
	if o.output.form == formNagios {
		level, text := nagiosOK, fmt.Sprintf("%s %s: %s", w.what, w.name, state)
		if !met {
			level = nagiosCritical
			text += fmt.Sprintf("; waited in vain for %s for it to be %s", waited.Round(time.Second), w.condition)
		}
		if err := closed(nagiosLine(out, level, text, fmt.Sprintf("waited=%.3fs", waited.Seconds())), closeOut); err != nil {
			return err
		}
		if !met {
			return silentError{level}
		}
		return nil
	}
	r, err := a.renderer(out, &o.output, waitSchema, false)
	if err != nil {
		return err
	}
	if !r.Help() {
		if err := r.Row(w.what, w.name, w.condition, met, orUnknown(state), waited, looks); err != nil {
			return err
		}
	}
	if err := closed(r.Close(), closeOut); err != nil || met || r.Help() {
		return err
	}
	f := failf(ExitWaited, "waited in vain for %s %s to be %s", w.what, w.name, w.condition)
	if state != "" {
		f = f.because("the last look: " + state)
	}
	return f.try("--within %s, or look what is wrong", 2*o.within)
}

// waitLagOptions are the flags of mqx wait lag.
type waitLagOptions struct {
	waitOptions
	group    string
	topics   []string
	below    int64
	ageBelow time.Duration
}

func newWaitLagCmd(a *app) *cobra.Command {
	o := &waitLagOptions{}
	c := &cobra.Command{
		Use:   "lag",
		Short: "Wait until a group is no longer behind",
		Long: `Counts the messages that the group has not read, those of its retry topics too, over all
brokers; with -t those of the topic, and of its pops what is to be given again: the retry topic
of a group that does not pop has messages of all topics, and is left out. A lag that is not
known, and a broker that does not answer, is not below anything.`,
		Example: `  mqx wait lag -g billing -t ORDERS --below 1000 --within 15m
  mqx wait lag -g billing --age-below 1m --within 1h && ./deploy.sh`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return runWaitLag(a, c, o) },
	}
	o.add(c)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVarP(&o.group, "group", "g", "", "the consumer group")
		f.StringArrayVarP(&o.topics, "topic", "t", nil, "in this topic; may be repeated (default: all that it reads)")
	})
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.Int64Var(&o.below, "below", 1, "until fewer messages than this are unread")
		f.Var(durationFlag{&o.ageBelow}, "age-below", "until the oldest of them is younger than this")
	})
	completeFlag(c, "group", completeGroups(a, &o.target))
	completeFlag(c, "topic", completeTopics(a, &o.target))
	return c
}

func runWaitLag(a *app, c *cobra.Command, o *waitLagOptions) error {
	age := c.Flags().Changed("age-below")
	messages := c.Flags().Changed("below") || !age
	if o.group == "" && !o.output.help() {
		return usagef("cannot run %q: --group is missing", c.CommandPath()).try("-g GROUP; mqx admin group ls lists them")
	}
	if o.below < 1 {
		return usagef("cannot use --below %d: there are never fewer messages than none", o.below).try("--below 1")
	}
	var parts []string
	if messages {
		parts = append(parts, fmt.Sprintf("below %s", words.Count(o.below, "message")))
	}
	if age {
		parts = append(parts, "younger than "+o.ageBelow.String())
	}
	w := wait{what: "lag", name: o.group, condition: strings.Join(parts, " and ")}
	w.look = func(ctx context.Context, client *admin.Client) (bool, string, error) {
		l, err := client.GetLag(ctx, admin.LagOptions{Groups: []string{o.group}, Topics: o.topics, Ages: age})
		if err != nil {
			return false, "", err
		}
		var s admin.LagSum
		for i := range l.Groups {
			for j := range l.Groups[i].Queues {
				s.Add(&l.Groups[i].Queues[j])
			}
		}
		if s.Queues == 0 && len(l.Errors) > 0 {
			return false, "", l.Errors[0] // nothing is known, and that is not 0
		}
		state := words.Count(s.Known, "message") + " behind"
		if s.Unknown > 0 {
			state += fmt.Sprintf(", unknown in %s", words.Count(int64(s.Unknown), "queue"))
		}
		if s.Age.OK {
			state += ", the oldest since " + s.Age.Value.Round(time.Second).String()
		}
		if len(l.Errors) > 0 && a.global.partial != "ok" {
			return false, state, errors.Join(errors.New(state), l.Errors[0])
		}
		met := s.Queues > 0 && s.Lag.OK
		met = met && (!messages || s.Lag.Value < o.below)
		met = met && (!age || s.Lag.Value == 0 || s.Age.OK && s.Age.Value < o.ageBelow)
		if s.Queues == 0 {
			state = "the group has read nothing yet"
		}
		return met, state, nil
	}
	return o.run(a, c, w)
}

// waitTopicOptions are the flags of mqx wait topic.
type waitTopicOptions struct {
	waitOptions
	brokers int
	gone    bool
}

func newWaitTopicCmd(a *app) *cobra.Command {
	o := &waitTopicOptions{}
	c := &cobra.Command{
		Use:   "topic TOPIC",
		Short: "Wait until clients are led to a topic, or no longer",
		Example: `  mqx wait topic ORDERS --within 1m
  mqx wait topic ORDERS --brokers 3 --within 1m
  mqx wait topic OLD --gone --within 5m`,
		Args:              exactArgs("TOPIC"),
		ValidArgsFunction: completeTopics(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			if o.brokers < 1 || o.gone && c.Flags().Changed("brokers") {
				return usagef("cannot use --brokers %d here", o.brokers).because("it is the least number of brokers that have the topic").try("--brokers 1")
			}
			w := wait{what: "topic", name: args[0], condition: "on " + words.Count(int64(o.brokers), "broker")}
			if o.gone {
				w.condition = "gone"
			}
			w.look = func(ctx context.Context, client *admin.Client) (bool, string, error) {
				there, err := client.TopicThere(ctx, args[0])
				if err != nil {
					return false, "", err
				}
				state := "no broker has it"
				if len(there) > 0 {
					state = "on " + strings.Join(there, ", ")
				}
				return o.gone && len(there) == 0 || !o.gone && len(there) >= o.brokers, state, nil
			}
			return o.run(a, c, w)
		},
	}
	o.add(c)
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.IntVar(&o.brokers, "brokers", 1, "until so many brokers have it")
		f.BoolVar(&o.gone, "gone", false, "until none has it")
	})
	return c
}

// waitBrokerOptions are the flags of mqx wait broker.
type waitBrokerOptions struct {
	waitOptions
	gone bool
}

func newWaitBrokerCmd(a *app) *cobra.Command {
	o := &waitBrokerOptions{}
	c := &cobra.Command{
		Use:   "broker BROKER",
		Short: "Wait until a broker is registered and answers, or is gone",
		Example: `  mqx wait broker broker-b --within 2m
  mqx wait broker broker-b --gone --within 3m`,
		Args:              exactArgs("BROKER"),
		ValidArgsFunction: completeBrokers(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			w := wait{what: "broker", name: args[0], condition: "registered and answering"}
			if o.gone {
				w.condition = "gone"
			}
			w.look = func(ctx context.Context, client *admin.Client) (bool, string, error) {
				there, errs, err := client.BrokerThere(ctx, args[0])
				switch {
				case err != nil:
					return false, "", err
				case len(there) == 0:
					return o.gone, "not registered", nil
				case len(errs) > 0:
					return false, "registered, but " + errs[0].Error(), nil
				}
				return !o.gone, "registered and answering", nil
			}
			return o.run(a, c, w)
		},
	}
	o.add(c)
	grouped(c, groupRange, func(f *pflag.FlagSet) { f.BoolVar(&o.gone, "gone", false, "until no name server knows it") })
	return c
}

// waitGroupOptions are the flags of mqx wait group.
type waitGroupOptions struct {
	waitOptions
	members int
	gone    bool
}

func newWaitGroupCmd(a *app) *cobra.Command {
	o := &waitGroupOptions{}
	c := &cobra.Command{
		Use:   "group GROUP",
		Short: "Wait until a group is there, has members, or is gone",
		Example: `  mqx wait group billing --members 4 --within 2m
  mqx wait group billing --members 0 --within 2m && mqx admin offset rm -g billing --all --confirm billing`,
		Args:              exactArgs("GROUP"),
		ValidArgsFunction: completeGroups(a, &o.target),
		RunE: func(c *cobra.Command, args []string) error {
			counts := c.Flags().Changed("members")
			if o.members < 0 || o.gone && counts {
				return usagef("cannot use --members %d here", o.members).because("it is the least number of members that are online, or 0 for none").try("--members 1")
			}
			w := wait{what: "group", name: args[0], condition: "there"}
			switch {
			case o.gone:
				w.condition = "gone"
			case counts && o.members == 0:
				w.condition = "without members"
			case counts:
				w.condition = "of " + words.Count(int64(o.members), "member")
			}
			w.look = func(ctx context.Context, client *admin.Client) (bool, string, error) {
				return o.look(ctx, client, args[0], counts)
			}
			return o.run(a, c, w)
		},
	}
	o.add(c)
	grouped(c, groupRange, func(f *pflag.FlagSet) {
		f.IntVar(&o.members, "members", 0, "until so many members are online; 0: none")
		f.BoolVar(&o.gone, "gone", false, "until no broker knows it")
	})
	return c
}

func (o *waitGroupOptions) look(ctx context.Context, client *admin.Client, group string, counts bool) (bool, string, error) {
	l, err := client.GetLag(ctx, admin.LagOptions{Groups: []string{group}})
	if none, ok := errors.AsType[*admin.NotFoundError](err); ok && none.Kind == "group" {
		return o.gone, "no broker knows it", nil
	}
	if err != nil {
		return false, "", err
	}
	if len(l.Errors) > 0 {
		return false, "", l.Errors[0]
	}
	online := remoting.Opt[int]{}
	for i := range l.Groups {
		online = remoting.Some(len(l.Groups[i].Members))
	}
	state := words.Count(int64(online.Value), "member") + " online"
	switch {
	case o.gone:
		return false, state, nil
	case counts && o.members == 0:
		return online.OK && online.Value == 0, state, nil
	}
	return online.OK && online.Value >= o.members, state, nil
}
