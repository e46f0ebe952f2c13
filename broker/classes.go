package broker

import "mqx/remoting/server"

// classes are the request classes, shared by the main and the VIP port.
type classes struct {
	send, pull, litePull, query, admin, client, heartbeat, ack, load, end, reply *server.Class
	// vip is what the VIP port has over pulls.
	vip *server.Precedence
}

// maxSendBatch bounds the sends that go to the store in one call.
const maxSendBatch = 256

func newClasses(c *Config) *classes {
	vip := server.NewPrecedence()
	class := func(cfg server.ClassConfig) *server.Class {
		if !c.FastFailure {
			cfg.MaxWait = 0
		}
		return server.NewClass(cfg)
	}
	return &classes{
		vip:       vip,
		send:      class(server.ClassConfig{Name: "send", Workers: c.SendThreads, Queue: c.SendQueue, MaxWait: c.SendWait, MaxBatch: maxSendBatch}),
		pull:      class(server.ClassConfig{Name: "pull", Workers: c.PullThreads, Queue: c.PullQueue, MaxWait: c.PullWait, StepsBackFor: vip}),
		litePull:  class(server.ClassConfig{Name: "litePull", Workers: c.LitePullThreads, Queue: c.LitePullQueue, MaxWait: c.LitePullWait, StepsBackFor: vip}),
		query:     class(server.ClassConfig{Name: "query", Workers: c.QueryThreads, Queue: c.QueryQueue}),
		admin:     class(server.ClassConfig{Name: "admin", Workers: c.AdminThreads, Queue: c.AdminQueue, MaxWait: c.AdminWait}),
		client:    class(server.ClassConfig{Name: "client", Workers: c.ClientThreads, Queue: c.ClientQueue}),
		heartbeat: class(server.ClassConfig{Name: "heartbeat", Workers: c.HeartbeatThreads, Queue: c.HeartbeatQueue, MaxWait: c.HeartbeatWait}),
		ack:       class(server.ClassConfig{Name: "ack", Workers: c.AckThreads, Queue: c.AckQueue, MaxWait: c.AckWait, MaxBatch: maxSendBatch}),
		load:      class(server.ClassConfig{Name: "loadBalance", Workers: c.LoadThreads, Queue: c.LoadQueue}),
		end:       class(server.ClassConfig{Name: "endTransaction", Workers: c.EndTransactionThreads, Queue: c.EndTransactionQueue, MaxWait: c.EndTransactionWait, MaxBatch: maxSendBatch}),
		reply:     class(server.ClassConfig{Name: "reply", Workers: c.ReplyThreads, Queue: c.ReplyQueue}),
	}
}

func (c *classes) of(s stage) *server.Class {
	switch s {
	case sendStage:
		return c.send
	case pullStage:
		return c.pull
	case litePullStage:
		return c.litePull
	case queryStage:
		return c.query
	case adminStage:
		return c.admin
	case clientStage:
		return c.client
	case heartbeatStage:
		return c.heartbeat
	case ackStage:
		return c.ack
	case loadStage:
		return c.load
	case endStage:
		return c.end
	case replyStage:
		return c.reply
	default:
		return nil
	}
}

func (c *classes) all() []*server.Class {
	return []*server.Class{c.send, c.pull, c.litePull, c.query, c.admin, c.client, c.heartbeat, c.ack, c.load, c.end, c.reply}
}
