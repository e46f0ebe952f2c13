package broker

import (
	"time"

	"mqx/remoting/server"
)

// classes are the request classes, shared by the main and the VIP port.
type classes struct {
	send, pull, litePull, query, admin, client, heartbeat *server.Class
}

// maxSendBatch bounds the sends that go to the store in one call.
const maxSendBatch = 256

func newClasses(c *Config) *classes {
	class := func(name string, workers, queue int, wait time.Duration, batch int) *server.Class {
		if !c.FastFailure {
			wait = 0
		}
		return server.NewClass(server.ClassConfig{Name: name, Workers: workers, Queue: queue, MaxWait: wait, MaxBatch: batch})
	}
	return &classes{
		send:      class("send", c.SendThreads, c.SendQueue, c.SendWait, maxSendBatch),
		pull:      class("pull", c.PullThreads, c.PullQueue, c.PullWait, 0),
		litePull:  class("litePull", c.LitePullThreads, c.LitePullQueue, c.LitePullWait, 0),
		query:     class("query", c.QueryThreads, c.QueryQueue, 0, 0),
		admin:     class("admin", c.AdminThreads, c.AdminQueue, c.AdminWait, 0),
		client:    class("client", c.ClientThreads, c.ClientQueue, 0, 0),
		heartbeat: class("heartbeat", c.HeartbeatThreads, c.HeartbeatQueue, c.HeartbeatWait, 0),
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
	default:
		return nil
	}
}

func (c *classes) all() []*server.Class {
	return []*server.Class{c.send, c.pull, c.litePull, c.query, c.admin, c.client, c.heartbeat}
}
