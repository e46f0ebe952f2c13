package cmd

import (
	"errors"

	"github.com/spf13/cobra"

	"mqx/admin"
	"mqx/client"
	"mqx/message"
)

func newMessageCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "message", Aliases: []string{"messages"}, Short: "Messages of a cluster",
		Example: `  mqx admin message get 7F000001000077C80000000000000000
  mqx admin message find ORDERS --key order-4711
  mqx admin message track 7F000001000077C80000000000000000
  mqx admin message export ORDERS -O orders.ndjson`,
	}, newMessageGetCmd(a), newMessageFindCmd(a), newMessageDecodeCmd(a), newMessageTrackCmd(a), newMessageExportCmd(a), newMessageImportCmd(a), newMessageCopyCmd(a),
		newMessageReplayCmd(a), newMessageSendCmd())
}

// newMessageSendCmd says where sending is: there is one way to do it.
func newMessageSendCmd() *cobra.Command {
	return &cobra.Command{
		Use: "send", Short: "Send messages: mqx produce", Hidden: true, DisableFlagParsing: true, Example: "  mqx produce ORDERS --key 1 FILE",
		RunE: func(*cobra.Command, []string) error {
			return usagef("mqx admin message has no send").because("mqx produce sends messages").try("echo BODY | mqx produce TOPIC --key KEY --tag TAG")
		},
	}
}

// noMessage is the failure of a search that found nothing, with who was asked.
func noMessage(err error) error {
	if none, ok := errors.AsType[*admin.MessageNotFoundError](err); ok {
		return (&Failure{Code: ExitNotFound, Err: err}).because(none.Where()).try("mqx admin message decode ID, or mqx admin message find TOPIC --key KEY")
	}
	if id, ok := errors.AsType[*message.IDError](err); ok {
		return usagef("%w", id).try("mqx admin message find TOPIC --key KEY, for an application's key")
	}
	return err
}

// tellAsked says which brokers were asked.
func (a *app) tellAsked(brokers []admin.Broker) {
	for _, b := range brokers {
		a.note("asked broker %s (%s)", b.Name, b.Addr)
	}
}

// printMessages writes messages as rows until there are enough.
func printMessages(h *handOff, ms []*client.Received) error {
	for _, m := range ms {
		if err := h.take(m); err != nil {
			if errors.Is(err, client.ErrStop) {
				return nil
			}
			return err
		}
	}
	return nil
}
