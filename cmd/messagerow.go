package cmd

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/client"
	"mqx/internal/render"
)

// messageFlags say how messages are shown, wherever they are printed.
type messageFlags struct {
	body   string
	redact bool
}

func (f *messageFlags) add(c *cobra.Command) {
	grouped(c, groupOutput, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.body, "body", "text", "how bodies are written: text (base64 where it is not UTF-8), hex, base64 or none")
		flags.BoolVar(&f.redact, "redact", false, "hide bodies and the values of properties")
	})
}

func (f *messageFlags) check() error {
	switch f.body {
	case "text", "hex", "base64", "none":
		return nil
	}
	return notOneOf("--body", f.body, "text", "hex", "base64", "none")
}

var messageSchema = render.Schema{Kind: "MessageList", Name: "msgId", Fields: []render.Field{
	{Name: "topic", Wide: true, Doc: "topic"},
	{Name: "broker", Doc: "broker it was read from"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "queueOffset", Title: "OFFSET", Kind: render.Int, Doc: "offset in the queue"},
	{Name: "storeTime", Title: "STORED", Kind: render.Time, Doc: "when the broker stored it"},
	{Name: "tag", Doc: "tag"},
	{Name: "keys", Kind: render.List, Whole: true, Doc: "keys it can be found by"},
	{Name: "body", Doc: "body, decompressed"},
	{Name: "bodyEncoding", Wide: true, Doc: "how body is written: text, hex, base64, none"},
	{Name: "bodySize", Kind: render.Size, Wide: true, Doc: "size of the body"},
	{Name: "msgId", Title: "MESSAGE ID", Wide: true, Whole: true, Doc: "unique id its producer gave it, else the offset id"},
	{Name: "offsetMsgId", Title: "OFFSET ID", Wide: true, Whole: true, Doc: "id made of the broker's address and the position in its log"},
	{Name: "bornTime", Title: "BORN", Kind: render.Time, Wide: true, Doc: "when it was sent"},
	{Name: "bornHost", Wide: true, Doc: "who sent it"},
	{Name: "storeHost", Wide: true, Doc: "who stored it"},
	{Name: "physicalOffset", Title: "LOG OFFSET", Kind: render.Int, Wide: true, Doc: "position in the commit log"},
	{Name: "reconsumeTimes", Title: "RETRIED", Kind: render.Int, Wide: true, Doc: "how often it has been given back"},
	{Name: "flag", Kind: render.Int, Wide: true, Doc: "flag of the application"},
	{Name: "sysFlag", Kind: render.Int, Wide: true, Doc: "system flag as stored"},
	{Name: "properties", Kind: render.Object, Wide: true, Doc: "all properties"},
}}

const hidden = "(hidden)"

// row is a message as a record of messageSchema.
func (f *messageFlags) row(m *client.Received) []any {
	body, encoding := f.bodyText(m.Body)
	properties := make(map[string]string, len(m.Properties))
	for k, v := range m.Properties {
		if f.redact {
			v = hidden
		}
		properties[k] = v
	}
	keys := m.Keys()
	tag := m.Tags()
	if f.redact {
		for i := range keys {
			keys[i] = hidden
		}
		if tag != "" {
			tag = hidden
		}
	}
	return []any{
		m.Topic, m.Queue.BrokerName, m.Queue.QueueID, m.QueueOffset, whenMs(m.StoreTimestamp), tag, listOf(keys),
		body, encoding, len(m.Body), orUnknown(m.MessageID), orUnknown(m.OffsetID), whenMs(m.BornTimestamp),
		fmt.Sprint(m.BornHost), fmt.Sprint(m.StoreHost), m.PhysicalOffset, m.ReconsumeTimes, m.Flag, m.SysFlag, properties,
	}
}

func (f *messageFlags) bodyText(b []byte) (text any, encoding string) {
	switch {
	case f.redact:
		return hidden, "none"
	case f.body == "none":
		return nil, "none"
	case f.body == "hex":
		return hex.EncodeToString(b), "hex"
	case f.body == "base64" || !utf8.Valid(b):
		return base64.StdEncoding.EncodeToString(b), "base64"
	default:
		return string(b), "text"
	}
}

// whenMs is a time of a record; one that was never set is unknown.
func whenMs(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func orUnknown(s string) any {
	if s == "" {
		return nil
	}
	return s
}
