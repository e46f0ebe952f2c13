package cmd

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mqx/message"
)

// later is what --delay and --at ask for: a property of each message, and how it
// is read back to the user.
type later struct {
	property, value string
	said            string
}

// when reads --delay and --at. The broker keeps a message of --delay for that long
// from when it arrives, one of --at until that time. nil is at once.
func (o *produceOptions) when(c *cobra.Command, now time.Time) (*later, error) {
	delayed, timed := c.Flags().Changed("delay"), c.Flags().Changed("at")
	switch {
	case !delayed && !timed:
		return nil, nil
	case delayed && timed:
		return nil, usagef("cannot use --delay and --at together: each of them says when to deliver").try("one of them")
	case o.batch > 1:
		return nil, usagef("cannot use --delay or --at with --batch %d: messages of a batch are not delayed", o.batch).try("--batch 1")
	case timed:
		at, err := parseTime(o.at, now)
		if err != nil {
			return nil, err
		}
		said := "delivery at " + at.Format(time.RFC3339)
		if d := at.Sub(now).Round(time.Second); d > 0 {
			said += ", in " + d.String()
		} else {
			said += ", which has passed: at once"
		}
		return &later{message.PropTimerDeliverMs, strconv.FormatInt(at.UnixMilli(), 10), said}, nil
	}
	d, err := parseDuration(o.delay)
	if err != nil {
		return nil, usagef("cannot use --delay %q: %w", o.delay, err).try("--delay 10s")
	}
	if d < time.Millisecond {
		return nil, usagef("cannot use --delay %q: it must be at least a millisecond", o.delay).try("--delay 10s")
	}
	return &later{
		message.PropTimerDelayMs, strconv.FormatInt(d.Milliseconds(), 10),
		"delivery " + d.String() + " after the broker has the message, now about " + now.Add(d).Format(time.RFC3339),
	}, nil
}
