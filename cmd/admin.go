package cmd

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"mqx/admin"
	"mqx/internal/render"
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
		p := render.Problem{Target: target, Addr: e.Addr, Message: message}
		if f := classify(e); f.Code == ExitConnect && f.Try != "" && !strings.Contains(message, f.Try) {
			p.Why, p.Try = f.Why, f.Try
		}
		out = append(out, p)
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
