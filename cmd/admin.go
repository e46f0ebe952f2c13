package cmd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/message"
	remoteclient "mqx/remoting/client"
)

func newAdminCmd(a *app) *cobra.Command {
	c := asGroup(&cobra.Command{
		Use:   "admin",
		Short: "Look at and change a live cluster",
		Example: `  mqx admin topic ls --sort -writeQueues
  mqx admin topic create ORDERS --queues 8 --yes
  mqx admin group get billing --match 'lag>0'`,
	})
	if a.builds("admin") {
		a.addParts(c, adminNouns)
	}
	return c
}

// adminNouns are the commands of mqx admin.
var adminNouns = []part{
	{"topic topics", newTopicCmd},
	{"group groups", newGroupCmd},
	{"lag lags", newLagCmd},
	{"offset offsets", newOffsetCmd},
	{"message messages", newMessageCmd},
	{"cluster clusters", newClusterCmd},
	{"trace traces", newTraceCmd},
	{"dlq dlqs", newDLQCmd},
	{"config configs", newConfigCmd},
	{"broker brokers", newBrokerAdminCmd},
	{"client clients", newClientCmd},
	{"producer producers", newProducerCmd},
	{"nameserver nameservers namesrv", newNameserverAdminCmd},
	{"stats", newStatsCmd},
	{"ha", newHACmd},
	{"controller controllers", newControllerCmd},
	{"queue queues", newQueueCmd},
	{"acl acls", newACLCmd},
	{"plan plans", newPlanCmd},
	{"undo", newUndoCmd},
}

// targetProblems are the brokers that did not answer, as records.
func targetProblems(errs []admin.TargetError) problems {
	out := make(problems, 0, len(errs))
	for _, e := range errs {
		target := e.Broker
		if target == "" {
			target = e.Addr
		}
		message := e.Err.Error()
		if c, ok := errors.AsType[*remoteclient.ConnectError](e.Err); ok && e.Broker != "" && c.Dialled == "" {
			message += "; " + mapHint(c.Addr)
		}
		out = append(out, render.Problem{Target: target, Addr: e.Addr, Message: message})
	}
	return out
}

// allFailed is the first error when nothing at all came back: then it is no
// partial result.
func allFailed(items int, errs []admin.TargetError) error {
	if items > 0 || len(errs) == 0 {
		return nil
	}
	return &noneError{errs}
}

// noneError says that nothing came but errors: from some of those that were asked, or from all.
type noneError struct{ errs []admin.TargetError }

// Error is the first of them.
func (e *noneError) Error() string { return e.errs[0].Error() }

// Unwrap is the first of them.
func (e *noneError) Unwrap() error { return e.errs[0] }

// explainEmpty says when a list is empty because nothing serves the cluster.
func (a *app) explainEmpty(ctx context.Context, c *admin.Client, items int) {
	if items > 0 {
		return
	}
	if brokers, err := c.Cluster(ctx); err == nil && len(brokers) == 0 {
		a.warn("no broker is registered at the name servers")
	}
}

// completionTime bounds the question; with the start of the process the answer is
// there within half a second.
const completionTime = 400 * time.Millisecond

// completer makes a completion function of a query that is given half a second.
func completer(a *app, t *targetFlags, query func(ctx context.Context, c *admin.Client) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), completionTime)
		defer cancel()
		var out []string
		for _, n := range a.namesWithin(ctx, t, query) {
			if strings.HasPrefix(n, prefix) {
				out = append(out, n)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// namesWithin asks until ctx ends; what a silent server or a slow command for a
// secret holds up is left behind, and nothing is offered.
func (a *app) namesWithin(ctx context.Context, t *targetFlags, query func(ctx context.Context, c *admin.Client) ([]string, error)) []string {
	found := make(chan []string, 1)
	go func() {
		var names []string
		if client, err := a.adminClient(ctx, t); err == nil {
			names, _ = query(ctx, client) // what came is offered
			_ = client.Close()
		}
		found <- names
	}()
	select {
	case names := <-found:
		return names
	case <-ctx.Done():
	}
	select {
	case names := <-found: // those that answered in time
		return names
	case <-time.After(graceTime):
		return nil
	}
}

// graceTime is how long an answer that is cut off may take to end.
const graceTime = 30 * time.Millisecond

// completeTopics offers topics for the first argument, files after it.
func completeTopics(a *app, t *targetFlags) cobra.CompletionFunc {
	topics := completer(a, t, func(ctx context.Context, c *admin.Client) ([]string, error) {
		names, err := c.TopicNames(ctx)
		return slices.DeleteFunc(names, func(n string) bool {
			return message.IsSystemTopic(n) || message.IsRetry(n) || message.IsDLQ(n)
		}), err
	})
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return topics(c, args, prefix)
	}
}

func completeGroups(a *app, t *targetFlags) cobra.CompletionFunc {
	return completer(a, t, func(ctx context.Context, c *admin.Client) ([]string, error) {
		list, err := c.ListGroups(ctx, admin.ListGroupsOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		return names, nil
	})
}

func completeBrokers(a *app, t *targetFlags) cobra.CompletionFunc {
	return completer(a, t, func(ctx context.Context, c *admin.Client) ([]string, error) {
		brokers, err := c.Cluster(ctx)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, b := range brokers {
			names = append(names, b.Name)
		}
		return names, nil
	})
}

func completeClusters(a *app, t *targetFlags) cobra.CompletionFunc {
	return completer(a, t, func(ctx context.Context, c *admin.Client) ([]string, error) {
		brokers, err := c.Cluster(ctx)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, b := range brokers {
			names = append(names, b.Cluster)
		}
		return slices.Compact(names), nil
	})
}

func completeFlag(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}
