package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mqx/remoting"
)

// Names of acts, as plans write them down.
const (
	actPurgeExpired = "purge-expired"
	actPurgeQueues  = "purge-queues"
	actPurgeUnused  = "purge-unused-topics"
	actReadAhead    = "read-ahead"
	actTimerEngine  = "timer-engine"
	actFlushOffset  = "master-flush-offset"
	actPopRecords   = "pop-records"
	actElect        = "elect-master"
	actCleanBroker  = "clean-broker-metadata"
	actAddBroker    = "add-broker"
	actRemoveBroker = "remove-broker"
	actLiteDispatch = "lite-dispatch"
	actRocksDBJSON  = "rocksdb-config-to-json"
)

// Why acts cannot be taken back.
const (
	finalDeleted = "what was deleted does not come back"
	finalAgain   = "it is set again with the same command; what it was before, servers do not tell"
	finalDone    = "the server has done it"
)

// acts are all things that servers can be asked to do. A function, since they call
// what reads it.
func acts() map[string]*actKind {
	return map[string]*actKind{
		actPurgeExpired: {
			title: objectTitle("delete the expired files of the commit log of"), step: "files past their time go, whatever the hour", destroys: true, final: finalDeleted,
			notes: expiredNotes, do: plainAct(remoting.ReqDeleteExpiredCommitLog),
		},
		actPurgeQueues: {
			title: objectTitle("delete the expired files of the consume queues of"), step: "entries go whose messages have gone", destroys: true, final: finalDeleted,
			notes: queueNotes, do: plainAct(remoting.ReqCleanExpiredConsumeQueue),
		},
		actPurgeUnused: {
			title: objectTitle("delete the queues of topics that are gone from"), step: "queues go of topics that the broker does not know", destroys: true, final: finalDeleted,
			do: plainAct(remoting.ReqCleanUnusedTopic),
		},
		actReadAhead: {
			title: func(r actRequest) string { return "set the read ahead mode of " + r.Object + " to " + r.Args["mode"] }, final: finalAgain,
			do: func(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
				req := remoting.NewRequest(remoting.ReqSetCommitLogReadMode, nil)
				req.Fields.Set("READ_AHEAD_MODE", r.Args["mode"])
				return c.actAnswer(ctx, at, req)
			},
		},
		actTimerEngine: {
			title: func(r actRequest) string { return "switch the timer engine of " + r.Object + " to " + r.Args["engine"] }, final: finalAgain,
			do: func(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
				req := remoting.NewRequest(remoting.ReqSwitchTimerEngine, nil)
				req.Fields.Set("E_T", r.Args["engine"])
				return c.actAnswer(ctx, at, req)
			},
		},
		actFlushOffset: {
			title: func(r actRequest) string {
				return "set the master's flush offset at " + r.Object + " to " + r.Args["offset"]
			}, final: finalAgain,
			do: func(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
				offset, err := strconv.ParseInt(r.Args["offset"], 10, 64)
				if err != nil {
					return "", fmt.Errorf("cannot read offset: %w", err)
				}
				return c.actAnswer(ctx, at, remoting.NewRequest(remoting.ReqResetMasterFlushOffset, &remoting.ResetMasterFlushOffsetHeader{MasterFlushOffset: offset}))
			},
		},
		actPopRecords: {
			title: objectTitle("bring the pop records in RocksDB back into the log of"), step: "pop records go from RocksDB into the log", final: finalDone,
			do: plainAct(remoting.ReqPopRollback),
		},
		actElect:       {title: func(r actRequest) string { return "elect broker id " + r.Args["id"] + " master of " + r.Object }, final: "elect the other one again", look: lookElect, do: electMaster},
		actCleanBroker: {title: objectTitle("forget the metadata of broker"), step: "the controller forgets it", destroys: true, final: finalDone, look: lookClean, do: cleanBroker},
		actAddBroker: {title: func(r actRequest) string {
			return "add the broker of " + r.Args["config"] + " to container " + r.Object
		}, final: "mqx admin broker rm --container takes it away", do: addBroker},
		actRemoveBroker: {title: objectTitle("remove broker"), step: "the broker stops", destroys: true, final: "mqx admin broker create --container starts it again", do: removeBroker},
		actLiteDispatch: {
			title: func(r actRequest) string {
				return "dispatch the lite topics of " + r.Args["topic"] + " to group " + r.Object
			}, final: finalDone,
			do: func(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
				return c.actAnswer(ctx, at, remoting.NewRequest(remoting.ReqTriggerLiteDispatch, &remoting.TriggerLiteDispatchHeader{Group: r.Object, ClientID: r.Args["client"]}))
			},
		},
		actRocksDBJSON: {
			title: objectTitle("write the configuration in RocksDB as JSON on"), step: "the broker writes the files in its store", final: finalDone,
			do: func(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
				return c.actAnswer(ctx, at, remoting.NewRequest(remoting.ReqExportRocksDBConfigToJSON, &remoting.ExportRocksDBConfigToJSONHeader{ConfigType: r.Args["types"]}))
			},
		},
	}
}

func plainAct(code int32) func(context.Context, *Client, Broker, actRequest) (string, error) {
	return func(ctx context.Context, c *Client, at Broker, _ actRequest) (string, error) {
		return c.actAnswer(ctx, at, remoting.NewRequest(code, nil))
	}
}

// actAnswer sends a request and returns what the server says of it, "" for nothing.
func (c *Client) actAnswer(ctx context.Context, at Broker, req *remoting.Command) (string, error) {
	return c.actAnswerWithin(ctx, c.cfg.BrokerTimeout, at, req)
}

func (c *Client) actAnswerWithin(ctx context.Context, limit time.Duration, at Broker, req *remoting.Command) (string, error) {
	resp, err := c.askWithin(ctx, limit, at.Addr, req)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(resp.Remark), nil
}

// containerWait is how long a broker may take to start or to stop before its container answers.
const containerWait = 2 * time.Minute

func addBroker(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
	return c.actAnswerWithin(ctx, containerWait, at, remoting.NewRequest(remoting.ReqAddBroker, &remoting.AddBrokerHeader{ConfigPath: r.Args["config"]}))
}

func removeBroker(ctx context.Context, c *Client, at Broker, r actRequest) (string, error) {
	id, err := strconv.ParseInt(r.Args["id"], 10, 64)
	if err != nil {
		return "", fmt.Errorf("cannot read broker id: %w", err)
	}
	return c.actAnswerWithin(ctx, containerWait, at, remoting.NewRequest(remoting.ReqRemoveBroker,
		&remoting.RemoveBrokerHeader{BrokerName: r.Object, BrokerClusterName: r.Args["cluster"], BrokerID: id}))
}
