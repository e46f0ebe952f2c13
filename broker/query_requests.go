package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// queryTimeout bounds the wait for an index that is catching up.
const queryTimeout = 3 * time.Second

// uniqueKeyField switches QUERY_MESSAGE to unique keys.
const uniqueKeyField = "_UNIQUE_KEY_QUERY"

// handleQueryMessage serves QUERY_MESSAGE.
func (b *Broker) handleQueryMessage(r *server.Request) {
	var h remoting.QueryMessageHeader
	if !header(r, &h) {
		return
	}
	if h.LastKey != "" {
		r.Reply(remoting.RespInvalidParameter, fmt.Sprintf("lastKey[%s]: a query can go on behind a key in an index in RocksDB only; %s", h.LastKey, noRocksDB))
		return
	}
	req := store.QueryRequest{Topic: h.Topic, Key: h.Key, Max: int(h.MaxNum), Begin: h.BeginTimestamp, End: h.EndTimestamp}
	switch h.IndexType {
	case "T":
		req.Kind = store.KeyTag
	case "U":
		req.Kind = store.KeyUnique
	}
	if unique, _ := r.Fields.Bool(uniqueKeyField); unique {
		req.Kind = store.KeyUnique
		req.Max = b.cfg().Store.DefaultQueryMaxNum
	}
	ctx, cancel := context.WithTimeout(b.ctx, queryTimeout)
	defer cancel()
	res, err := b.store.Query(ctx, req)
	if err != nil && (!errors.Is(err, store.ErrIndexBehind) || res == nil || len(res.Parts) == 0) {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the query failed: %v", err))
		return
	}
	code, remark := remoting.RespSuccess, ""
	if len(res.Parts) == 0 {
		code, remark = remoting.RespQueryNotFound, "can not find message, maybe time range not correct"
	} else if err != nil {
		remark = err.Error()
	}
	p := newReply(code, remark)
	p.int(keyIndexTime, res.LastUpdateTime)
	p.int(keyIndexPhys, res.LastUpdatePhys)
	r.ReplyBody(&p.cmd, res.Parts, nil)
	p.free()
}

// handleViewMessage serves VIEW_MESSAGE_BY_ID: the record at a physical offset.
func (b *Broker) handleViewMessage(r *server.Request) {
	var h remoting.ViewMessageHeader
	if !header(r, &h) {
		return
	}
	rec, err := b.store.RecordAt(h.Offset)
	if err != nil {
		r.Reply(remoting.RespSystemError, noRecordText(h.Offset, err))
		return
	}
	p := newReply(remoting.RespSuccess, "")
	r.ReplyBody(&p.cmd, [][]byte{rec}, nil)
	p.free()
}

// noRecordText is the remark of a record that cannot be had: another cause than
// that there is none is told.
func noRecordText(offset int64, err error) string {
	text := fmt.Sprintf("can not find message by the offset, %d", offset)
	if !errors.Is(err, store.ErrNoRecord) {
		text += ": " + err.Error()
	}
	return text
}
