package cmd

import (
	"encoding/hex"
	"fmt"

	"mqx/internal/render"
	"mqx/message"
	"mqx/store/inspect"
)

// storeMessageFields are the fields of a message as it lies in a commit log.
var storeMessageFields = []render.Field{
	{Name: "physicalOffset", Title: "POSITION", Kind: render.Int, Doc: "position of the record in the commit log"},
	{Name: "size", Kind: render.Size, Doc: "size of the record"},
	{Name: "storeTime", Title: "STORED", Kind: render.Time, Doc: "when the broker stored it"},
	{Name: "topic", Doc: "topic"},
	{Name: "queueId", Title: "QUEUE", Kind: render.Int, Doc: "queue"},
	{Name: "queueOffset", Title: "OFFSET", Kind: render.Int, Doc: "offset in the queue"},
	{Name: "tag", Doc: "tag"},
	{Name: "keys", Kind: render.List, Doc: "keys it can be found by"},
	{Name: "body", Doc: "body, decompressed; as stored when that fails"},
	{Name: "bodyEncoding", Wide: true, Doc: "how body is written: text, hex, base64, none"},
	{Name: "bodySize", Kind: render.Size, Wide: true, Doc: "size of the body, decompressed"},
	{Name: "msgId", Title: "MESSAGE ID", Wide: true, Doc: "unique id its producer gave it, else the offset id"},
	{Name: "offsetMsgId", Title: "OFFSET ID", Wide: true, Doc: "id made of the broker's address and the position in its log"},
	{Name: "bornTime", Title: "BORN", Kind: render.Time, Wide: true, Doc: "when it was sent"},
	{Name: "bornHost", Wide: true, Doc: "who sent it"},
	{Name: "storeHost", Wide: true, Doc: "who stored it"},
	{Name: "reconsumeTimes", Title: "RETRIED", Kind: render.Int, Wide: true, Doc: "how often it has been given back"},
	{Name: "preparedTransactionOffset", Title: "PREPARED AT", Kind: render.Int, Wide: true, Doc: "in a record that commits: position of its half message, else 0"},
	{Name: "transaction", Wide: true, Doc: "none, prepared, commit or rollback"},
	{Name: "compression", Wide: true, Doc: "none, ZLIB, LZ4 or ZSTD"},
	{Name: "recordMessages", Kind: render.Int, Wide: true, Doc: "messages in the record: more than 1 in an inner batch, each of which is a row"},
	{Name: "version", Kind: render.Int, Wide: true, Doc: "version of the record: 1 or 2"},
	{Name: "bodyCrc", Title: "CRC", Wide: true, Doc: "ok, or bad when the body is not what was stored"},
	{Name: "flag", Kind: render.Int, Wide: true, Doc: "flag of the application"},
	{Name: "sysFlag", Kind: render.Int, Wide: true, Doc: "system flag as stored"},
	{Name: "properties", Kind: render.Object, Wide: true, Doc: "all properties"},
}

// leanFields is the number of storeMessageFields that are not wide.
const leanFields = 9

var storeLogSchema = render.Schema{Kind: "StoreMessageList", Name: "physicalOffset", Fields: storeMessageFields}

var storeFindSchema = render.Schema{Kind: "StoreFoundList", Name: "physicalOffset", Fields: append(storeMessageFields[:len(storeMessageFields):len(storeMessageFields)],
	render.Field{Name: "foundBy", Title: "BY", Doc: "offset, index or scan: how it was found"})}

// storeRecordRows are the messages of a record as rows of storeLogSchema: those that m wants, where it is an inner batch.
// lean leaves out the values of wide fields, which nobody will look at.
func (f *messageFlags) storeRecordRows(v message.View, m inspect.Match, lean bool, row func([]any) error) error {
	var all []message.Received
	for r, err := range message.DecodeMessages(v, message.ReceiveOptions{}) {
		if err != nil { // it cannot be decompressed, or is no batch: as it is stored
			all = []message.Received{storedRecord(v)}
			break
		}
		all = append(all, r)
	}
	for i := range all {
		if len(all) > 1 && !m.Message(&all[i]) {
			continue
		}
		if err := row(f.storeRow(v, &all[i], len(all), lean)); err != nil {
			return err
		}
	}
	return nil
}

func storedRecord(v message.View) message.Received {
	return message.Received{
		Message: message.Message{Topic: string(v.Topic()), Flag: v.Flag(), Body: v.Body(), Properties: message.ParseProperties(v.Properties())},
		QueueID: v.QueueID(), QueueOffset: v.QueueOffset(), PhysicalOffset: v.PhysicalOffset(), Size: v.Size(),
		SysFlag: v.SysFlag(), BornTimestamp: v.BornTimestamp(), BornHost: v.BornHost(), StoreTimestamp: v.StoreTimestamp(),
		StoreHost: v.StoreHost(), ReconsumeTimes: v.ReconsumeTimes(), PreparedTransactionOffset: v.PreparedTransactionOffset(),
	}
}

func (f *messageFlags) storeRow(v message.View, r *message.Received, count int, lean bool) []any {
	body, encoding := f.bodyText(r.Body)
	keys, tag := r.Keys(), r.Tags()
	if keys == nil {
		keys = []string{}
	}
	if f.redact {
		for i := range keys {
			keys[i] = hidden
		}
		if tag != "" {
			tag = hidden
		}
	}
	row := make([]any, 0, len(storeMessageFields)+1)
	row = append(row, v.PhysicalOffset(), v.Size(), whenMs(r.StoreTimestamp), r.Topic, r.QueueID, r.QueueOffset, tag, keys, body)
	if lean {
		return row[:len(storeMessageFields)]
	}
	id := r.UniqKey()
	if id == "" {
		id = r.OffsetID()
	}
	return append(row,
		encoding, len(r.Body), id, r.OffsetID(), whenMs(r.BornTimestamp), r.BornHost.String(), r.StoreHost.String(),
		r.ReconsumeTimes, r.PreparedTransactionOffset, transactionName(v.Transaction()), compressionName(v.SysFlag()), count, versionOf(v), crcState(v),
		r.Flag, v.SysFlag(), f.shownProperties(r.Properties))
}

func (f *messageFlags) shownProperties(all map[string]string) map[string]string {
	if !f.redact {
		return all
	}
	out := make(map[string]string, len(all))
	for k := range all {
		out[k] = hidden
	}
	return out
}

func versionOf(v message.View) int {
	if v.Magic() == message.MagicV2 {
		return 2
	}
	return 1
}

func crcState(v message.View) string {
	if message.BodyCRC(v.Body()) != v.BodyCRC() {
		return "bad"
	}
	return "ok"
}

func transactionName(state int32) string {
	switch state {
	case message.TransactionPrepared:
		return "prepared"
	case message.TransactionCommit:
		return "commit"
	case message.TransactionRollback:
		return "rollback"
	}
	return "none"
}

func compressionName(sysFlag int32) string {
	if sysFlag&message.FlagCompressed == 0 {
		return "none"
	}
	return fmt.Sprint(message.CompressionOf(sysFlag))
}

func hexText(b []byte) string { return hex.EncodeToString(b) }
