package broker

import (
	"math"
	"slices"
	"strings"
	"time"

	"mqx/store/ha"
)

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
	// MinInSyncReplicas are the brokers, the master counted, that must be in sync: with fewer nothing is taken that waits
	// for slaves. AutoInSyncReplicas makes do with what is in sync where that is less than InSyncReplicas, AllAckInSync
	// waits for all that are.
	MinInSyncReplicas  int  `conf:"minInSyncReplicas"`
	AutoInSyncReplicas bool `conf:"enableAutoInSyncReplicas"`
	AllAckInSync       bool `conf:"allAckInSyncStateSet"`
	// MaxGapNotInSync is how far behind, in bytes, a slave in sync may be, MaxTimeNotCaughtUp for how long it may not have
	// caught up.
	MaxGapNotInSync    int64         `conf:"haMaxGapNotInSync"`
	MaxTimeNotCaughtUp time.Duration `conf:"haMaxTimeSlaveNotCatchup,ms"`
	// TotalReplicas are the brokers of the group, the master counted: level quorum waits for more than half of them.
	TotalReplicas int `conf:"totalReplicas"`
	// ReadUncommitted shows consumers what has no copies yet, whatever the level says.
	ReadUncommitted bool `conf:"readUnCommitted"`
	// EnableSlaveActingMaster lets the slave with the smallest id stand in for a master that is away, for reads. Name servers
	// forget a broker that has not beaten for NotActive; it beats each BrokerHeartbeat, with HeartbeatTimeout for the answer, and
	// looks at its group each SyncMemberGroup. SkipPreOnline puts it into the routes without waiting for its group.
	EnableSlaveActingMaster bool          `conf:"enableSlaveActingMaster"`
	NotActive               time.Duration `conf:"brokerNotActiveTimeoutMillis,ms"`
	BrokerHeartbeat         time.Duration `conf:"brokerHeartbeatInterval,ms"`
	HeartbeatTimeout        time.Duration `conf:"sendHeartbeatTimeoutMillis,ms"`
	SyncMemberGroup         time.Duration `conf:"syncBrokerMemberGroupPeriod,ms"`
	SkipPreOnline           bool          `conf:"skipPreOnline"`
	// ReplicationLevel is mqx's own: async, semi-sync, sync or quorum, of an ASYNC_MASTER and a SYNC_MASTER alike; "" is what
	// Apache's keys say.
	ReplicationLevel string `conf:"replicationLevel"`
	// HAAckMode is mqx's own: written counts what slaves have in their page cache, flushed what they have on disk.
	HAAckMode string `conf:"haAckMode"`
	// AsyncReplicas is mqx's own: broker ids or hosts, commas between them, of slaves that nobody waits for.
	AsyncReplicas string `conf:"asyncReplicas"`
	// SemiSyncDegradeAfter is mqx's own: after so many waits in a row that were in vain semi-sync waits no longer.
	// SemiSyncDegradeAlone is for how long no slave may be connected, SemiSyncRearmAfter for how long one must have been near.
	SemiSyncDegradeAfter int           `conf:"semiSyncDegradeAfter"`
	SemiSyncDegradeAlone time.Duration `conf:"semiSyncDegradeAlone,ms"`
	SemiSyncRearmAfter   time.Duration `conf:"semiSyncRearmAfter,ms"`
}

func defaultReplication() Replication {
	return Replication{
		HABatchBytes: 32 << 10, HAHeartbeat: 5 * time.Second, HASilence: 20 * time.Second, HABytesPerSecond: 100 << 20,
		InSyncReplicas: 1, SlaveTimeout: 3 * time.Second, MinInSyncReplicas: 1, MaxGapNotInSync: 256 << 20,
		MaxTimeNotCaughtUp: 15 * time.Second, TotalReplicas: 1, NotActive: 10 * time.Second, BrokerHeartbeat: time.Second,
		HeartbeatTimeout: time.Second, SyncMemberGroup: time.Second, HAAckMode: "written",
		SemiSyncDegradeAfter: 3, SemiSyncDegradeAlone: 5 * time.Second, SemiSyncRearmAfter: 3 * time.Second,
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
		{"minInSyncReplicas", int64(r.MinInSyncReplicas), 0},
		{"totalReplicas", int64(r.TotalReplicas), 1},
		{"haMaxGapNotInSync", r.MaxGapNotInSync, 1},
		{"haMaxTimeSlaveNotCatchup", r.MaxTimeNotCaughtUp.Milliseconds(), 1},
		{"brokerNotActiveTimeoutMillis", r.NotActive.Milliseconds(), 1},
		{"brokerHeartbeatInterval", r.BrokerHeartbeat.Milliseconds(), 100},
		{"sendHeartbeatTimeoutMillis", r.HeartbeatTimeout.Milliseconds(), 1},
		{"syncBrokerMemberGroupPeriod", r.SyncMemberGroup.Milliseconds(), 100},
		{"semiSyncDegradeAfter", int64(r.SemiSyncDegradeAfter), 1},
		{"semiSyncDegradeAlone", r.SemiSyncDegradeAlone.Milliseconds(), 1},
		{"semiSyncRearmAfter", r.SemiSyncRearmAfter.Milliseconds(), 1},
	}
}

// isSlave says that the broker follows a master.
func (c *Config) isSlave() bool { return c.BrokerRole == "SLAVE" }

// rules are when this broker, as a master, acknowledges.
func (c *Config) rules() ha.Rules {
	r := ha.Rules{
		Level: ha.LevelAsync, Least: max(0, c.MinInSyncReplicas-1), Flushed: c.HAAckMode == "flushed",
		MaxGap: c.MaxGapNotInSync, MaxLag: c.MaxTimeNotCaughtUp, DegradeAfter: c.SemiSyncDegradeAfter,
		DegradeAlone: c.SemiSyncDegradeAlone, RearmAfter: c.SemiSyncRearmAfter, Batch: int64(c.HABatchBytes),
	}
	level := ha.Level(c.ReplicationLevel)
	switch {
	case level == ha.LevelAsync || level == "" && c.BrokerRole == "ASYNC_MASTER":
		r.Least = 0
		return r
	case level != "": // whatever brokerRole says, which a promotion may have changed
		r.Level, r.Hold = level, true
	case c.AllAckInSync:
		r.Level, r.Hold = ha.LevelSync, true
	default: // Apache shows consumers what is appended
		r.Level, r.Copies, r.Auto = ha.LevelQuorum, max(0, c.InSyncReplicas-1), c.AutoInSyncReplicas
		if r.Auto {
			r.Copies = max(r.Copies, r.Least)
		}
	}
	r.Hold = r.Hold && !c.ReadUncommitted
	switch level {
	case ha.LevelSemiSync:
		r.Copies = max(1, c.InSyncReplicas-1)
	case ha.LevelQuorum:
		r.Copies = c.TotalReplicas / 2
	}
	return r
}

// gapless is how far this broker is a master whose log may have copies, which have what a gap in it lacks: everywhere where
// messages wait for them, else as far as slaves have followed.
func (c *Config) gapless(copied int64) int64 {
	rules := c.rules()
	switch {
	case c.isSlave():
		return 0
	case rules.Waits():
		return math.MaxInt64
	}
	return copied
}

// held says that this broker is a master that shows consumers what has its copies only, after a restart too.
func (c *Config) held() bool {
	r := c.rules()
	return !c.isSlave() && r.Hold && r.Waits()
}

// validate reports what the keys of replication contradict.
func (c *Config) validateReplication(bad func(key, format string, args ...any)) {
	level := ha.Level(c.ReplicationLevel)
	if !slices.Contains([]ha.Level{"", ha.LevelAsync, ha.LevelSemiSync, ha.LevelSync, ha.LevelQuorum}, level) {
		bad("replicationLevel", "must be async, semi-sync, sync or quorum, got %q", c.ReplicationLevel)
		return
	}
	if c.HAAckMode != "written" && c.HAAckMode != "flushed" {
		bad("haAckMode", "must be written or flushed, got %q", c.HAAckMode)
	}
	switch {
	case level == "":
	case level == ha.LevelQuorum && c.TotalReplicas < 2:
		bad("replicationLevel", "quorum needs totalReplicas, the number of brokers of the group, got %d", c.TotalReplicas)
	case level == ha.LevelSemiSync && c.MinInSyncReplicas > 1:
		bad("minInSyncReplicas", "must be 1 with replicationLevel=semi-sync, which goes on without a slave, got %d", c.MinInSyncReplicas)
	case c.AutoInSyncReplicas:
		bad("enableAutoInSyncReplicas", "contradicts replicationLevel=%s, which says itself what is done with fewer slaves", level)
	}
	if least := c.BrokerHeartbeat + c.HeartbeatTimeout; c.EnableSlaveActingMaster && c.NotActive < least {
		bad("brokerNotActiveTimeoutMillis", "must be at least brokerHeartbeatInterval and sendHeartbeatTimeoutMillis together, %d, or name servers forget the broker between two signs of life, got %d",
			least.Milliseconds(), c.NotActive.Milliseconds())
	}
	if level == "" && c.AllAckInSync && c.AutoInSyncReplicas && c.BrokerRole == "SYNC_MASTER" {
		bad("enableAutoInSyncReplicas", "contradicts allAckInSyncStateSet, which waits for all that are in sync")
	}
}

// replicationWarnings are lines about a level that promises less than it seems to.
func (c *Config) replicationWarnings() (out []string) {
	r := c.rules()
	if c.EnableSlaveActingMaster && c.isSlave() {
		out = append(out, "remark: enableSlaveActingMaster: this slave stands in for its master for reads and offsets; what is delayed, transactions to be checked and pops to be revived wait for the master")
	}
	switch {
	case c.isSlave() || r.Level == ha.LevelAsync:
	case !r.Waits():
		out = append(out, "warning: brokerRole=SYNC_MASTER with inSyncReplicas=1 waits for no slave; set inSyncReplicas=2 to acknowledge what one has, or replicationLevel")
	case r.Level == ha.LevelSync && r.Least == 0:
		out = append(out, "warning: all replicas in sync are waited for, and with minInSyncReplicas=1 the master alone is enough; set minInSyncReplicas=2 to have a copy of all that is acknowledged")
	}
	return out
}

// isAsync reports whether a slave is one of asyncReplicas.
func (c *Config) isAsync(p ha.Peer) bool {
	for name := range strings.SplitSeq(c.AsyncReplicas, ",") {
		if name = strings.TrimSpace(name); name != "" && (name == p.ID || name == p.Host) {
			return true
		}
	}
	return false
}
