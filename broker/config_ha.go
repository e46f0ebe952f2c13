package broker

import "time"

// Replication is how the log is copied to slaves, and who waits for that.
type Replication struct {
	// HAMasterAddress is the replication port of the master, for a slave; "" is what the name servers tell.
	HAMasterAddress string `conf:"haMasterAddress"`
	// HABatchBytes is the most of the log in one frame.
	HABatchBytes int `conf:"haTransferBatchSize"`
	// HAHeartbeat is the time without a frame after which an empty one is sent, HASilence that after which the other
	// side is given up.
	HAHeartbeat time.Duration `conf:"haSendHeartbeatInterval,ms"`
	HASilence   time.Duration `conf:"haHousekeepingInterval,ms"`
	// HABytesPerSecond bounds what each slave gets, where HAFlowControl is on.
	HAFlowControl    bool  `conf:"haFlowControlEnable"`
	HABytesPerSecond int64 `conf:"maxHaTransferByteInSecond"`
	// InSyncReplicas are the brokers, the master counted, that have a message before a SYNC_MASTER acknowledges it, and
	// SlaveTimeout how long it waits for them.
	InSyncReplicas int           `conf:"inSyncReplicas"`
	SlaveTimeout   time.Duration `conf:"slaveTimeout,ms"`
	// OffsetCheckInSlave lets a slave correct the offsets of pulls; else it sends who asks for what it does not have to the master.
	OffsetCheckInSlave bool `conf:"offsetCheckInSlave"`
}

func defaultReplication() Replication {
	return Replication{
		HABatchBytes: 32 << 10, HAHeartbeat: 5 * time.Second, HASilence: 20 * time.Second, HABytesPerSecond: 100 << 20,
		InSyncReplicas: 1, SlaveTimeout: 3 * time.Second,
	}
}

func (r *Replication) positives() []bound {
	return []bound{
		{"haTransferBatchSize", int64(r.HABatchBytes), 1},
		{"haSendHeartbeatInterval", r.HAHeartbeat.Milliseconds(), 1},
		{"haHousekeepingInterval", r.HASilence.Milliseconds(), 1},
		{"maxHaTransferByteInSecond", r.HABytesPerSecond, 1},
		{"inSyncReplicas", int64(r.InSyncReplicas), 0},
		{"slaveTimeout", r.SlaveTimeout.Milliseconds(), 1},
	}
}

// isSlave says that the broker follows a master.
func (c *Config) isSlave() bool { return c.BrokerRole == "SLAVE" }

// copies are the slaves that must have a message before it is acknowledged.
func (c *Config) copies() int {
	if c.BrokerRole != "SYNC_MASTER" {
		return 0
	}
	return max(0, c.InSyncReplicas-1)
}
