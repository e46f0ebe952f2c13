package cmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mqx/admin"
)

// completionTime bounds the question; with the start of the process the answer is
// there within half a second.
const completionTime = 400 * time.Millisecond

// offers are the names that a completion may offer.
type offers struct {
	names  []string
	system []string // of brokers' own topics and groups: offered where they are asked for
}

// beginning are the names that begin with prefix; those of the system where there is a
// prefix that nothing else begins with.
func (o offers) beginning(prefix string) []string {
	other := func(n string) bool { return !strings.HasPrefix(n, prefix) }
	out := slices.DeleteFunc(slices.Clone(o.names), other)
	if len(out) == 0 && prefix != "" {
		out = slices.DeleteFunc(slices.Clone(o.system), other)
	}
	return out
}

// query asks a cluster for names.
type query func(ctx context.Context, c *admin.Client) (offers, error)

// completer makes a completion function of a query that is given half a second.
func completer(a *app, t *targetFlags, q query) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), completionTime)
		defer cancel()
		return a.namesWithin(ctx, t, q).beginning(prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesWithin asks until ctx ends; what a silent server or a slow command for a
// secret holds up is left behind, and nothing is offered.
func (a *app) namesWithin(ctx context.Context, t *targetFlags, q query) offers {
	found := make(chan offers, 1)
	go func() {
		var o offers
		if client, err := a.adminClient(ctx, t); err == nil {
			o, _ = q(ctx, client) // what came is offered
			_ = client.Close()
		}
		found <- o
	}()
	select {
	case o := <-found:
		return o
	case <-ctx.Done():
	}
	select {
	case o := <-found: // those that answered in time
		return o
	case <-time.After(graceTime):
		return offers{}
	}
}

// graceTime is how long an answer that is cut off may take to end.
const graceTime = 30 * time.Millisecond

// completeTopics offers topics for the first argument, files after it.
func completeTopics(a *app, t *targetFlags) cobra.CompletionFunc {
	topics := completer(a, t, func(ctx context.Context, c *admin.Client) (offers, error) {
		names, system, err := c.TopicNamesByUse(ctx)
		return offers{names, system}, err
	})
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return topics(c, args, prefix)
	}
}

func completeGroups(a *app, t *targetFlags) cobra.CompletionFunc {
	return completer(a, t, func(ctx context.Context, c *admin.Client) (offers, error) {
		names, system, err := c.GroupNames(ctx)
		return offers{names, system}, err
	})
}

func completeBrokers(a *app, t *targetFlags) cobra.CompletionFunc {
	return completer(a, t, func(ctx context.Context, c *admin.Client) (offers, error) {
		brokers, err := c.Cluster(ctx)
		var o offers
		for _, b := range brokers {
			o.names = append(o.names, b.Name)
		}
		o.names = slices.Compact(o.names) // a master and its slaves
		return o, err
	})
}

func completeClusters(a *app, t *targetFlags) cobra.CompletionFunc {
	return completer(a, t, func(ctx context.Context, c *admin.Client) (offers, error) {
		brokers, err := c.Cluster(ctx)
		var o offers
		for _, b := range brokers {
			o.names = append(o.names, b.Cluster)
		}
		o.names = slices.Compact(o.names)
		return o, err
	})
}

func completeFlag(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}
