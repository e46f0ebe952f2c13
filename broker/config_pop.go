package broker

import (
	"fmt"
	"time"

	"mqx/broker/pop"
)

// Pop is the rules of pop consumption and of the assignment of queues to
// clients.
type Pop struct {
	AckThreads  int           `conf:"ackMessageThreadPoolNums"`
	AckQueue    int           `conf:"ackThreadPoolQueueCapacity"`
	AckWait     time.Duration `conf:"waitTimeMillsInAckQueue,ms"`
	LoadThreads int           `conf:"loadBalanceProcessorThreadPoolNums"`
	LoadQueue   int           `conf:"loadBalanceThreadPoolQueueCapacity"`

	// PopPollingSize, PopPollingKeys and MaxPopPolling bound the held pops: of one
	// group in one queue of a topic (or all its queues), the number of such
	// lists, and all together.
	PopPollingSize int   `conf:"popPollingSize"`
	PopPollingKeys int   `conf:"popPollingMapSize"`
	MaxPopPolling  int64 `conf:"maxPopPollingSize"`
	// PopForceNotify wakes a held pop whatever it filters at each so many messages.
	PopForceNotify int64 `conf:"popLongPollingForceNotifyInterval"`
	// PopNotifyFilter and PopNotifyFilterMax: NOTIFICATION looks at the tags of
	// what is left, when that is less than so many messages.
	PopNotifyFilter    bool  `conf:"useMessageFilterForNotification"`
	PopNotifyFilterMax int64 `conf:"maxMessageFilterNumForNotification"`
	// PopNotifyLag lets waiting pops pass over what they do not want before the lag
	// of their group is told.
	PopNotifyLag bool `conf:"enableNotifyBeforePopCalculateLag"`
	// PopNotifyOrderFree wakes pops when an ordered queue opens.
	PopNotifyOrderFree bool `conf:"enableNotifyAfterPopOrderLockRelease"`

	// PopMerge keeps checkpoints and acks in memory; PopStay is the longest time,
	// PopEarly the time before the end of the invisible time at which they are
	// written, PopMaxPoints and PopMaxOffsets bound their number.
	PopMerge      bool          `conf:"enablePopBufferMerge"`
	PopStay       time.Duration `conf:"popCkStayBufferTime,ms"`
	PopEarly      time.Duration `conf:"popCkStayBufferTimeOut,ms"`
	PopMaxPoints  int           `conf:"popCkMaxBufferSize"`
	PopMaxOffsets int           `conf:"popCkOffsetMaxQueueSize"`
	PopBatchAck   bool          `conf:"enablePopBatchAck"`

	PopRetryV2          bool `conf:"enableRetryTopicV2"`
	PopReadRetryV1      bool `conf:"retrieveMessageFromPopRetryTopicV1"`
	PopRetryPercent     int  `conf:"popFromRetryProbability"`
	PopPriorityRetry    int  `conf:"popFromRetryProbabilityForPriority"`
	PopPriorityAsc      bool `conf:"priorityOrderAsc"`
	PopSeparateRetry    bool `conf:"useSeparateRetryQueue"`
	PopActualRetryTopic bool `conf:"popResponseReturnActualRetryTopic"`
	PopInitInMemory     bool `conf:"initPopOffsetByCheckMsgInMem"`

	// PopThreshold stops pops of a queue with more than PopThresholdNum messages
	// that are handed out and not acknowledged.
	PopThreshold    bool  `conf:"enablePopMessageThreshold"`
	PopThresholdNum int64 `conf:"popInflightMessageThreshold"`

	// ReviveEvery is the least time between two looks at the revive topic,
	// ReviveScan the longest time that one takes.
	ReviveEvery time.Duration `conf:"reviveInterval,ms"`
	ReviveScan  time.Duration `conf:"reviveScanTime,ms"`
	// ReviveDrop gives up a message that could not be written to its retry topic
	// after 17 tries.
	ReviveDrop bool `conf:"skipWhenCKRePutReachMaxTimes"`

	// ServerLoadBalancer assigns queues to clients in QUERY_ASSIGNMENT; else each
	// gets all.
	ServerLoadBalancer bool          `conf:"serverLoadBalancerEnable"`
	RoutePollEvery     time.Duration `conf:"loadBalancePollNameServerInterval,ms"`
	RequestMode        string        `conf:"defaultMessageRequestMode"`
	PopShareQueueNum   int           `conf:"defaultPopShareQueueNum"`
}

// defaultPop is Apache's defaults.
func defaultPop() Pop {
	return Pop{
		AckThreads: 16, AckQueue: 100_000, AckWait: 3 * time.Second, LoadThreads: 32, LoadQueue: 100_000,
		PopPollingSize: 1024, PopPollingKeys: 100_000, MaxPopPolling: 100_000, PopForceNotify: 800,
		PopNotifyFilter: true, PopNotifyFilterMax: 64, PopNotifyOrderFree: true, PopNotifyLag: true,
		PopStay: 10 * time.Second, PopEarly: 3 * time.Second, PopMaxPoints: 200_000, PopMaxOffsets: 20_000,
		PopReadRetryV1: true, PopRetryPercent: 20, PopPriorityAsc: true, PopInitInMemory: true, PopThresholdNum: 10_000,
		ReviveEvery: time.Second, ReviveScan: 10 * time.Second,
		ServerLoadBalancer: true, RoutePollEvery: 30 * time.Second, RequestMode: modePull, PopShareQueueNum: -1,
	}
}

// Modes in which a group asks for messages.
const (
	modePull = "PULL"
	modePop  = "POP"
)

func (p *Pop) positives() []bound {
	return []bound{
		{"ackMessageThreadPoolNums", int64(p.AckThreads), 1},
		{"ackThreadPoolQueueCapacity", int64(p.AckQueue), 1},
		{"loadBalanceProcessorThreadPoolNums", int64(p.LoadThreads), 1},
		{"loadBalanceThreadPoolQueueCapacity", int64(p.LoadQueue), 1},
		{"popPollingSize", int64(p.PopPollingSize), 1},
		{"popPollingMapSize", int64(p.PopPollingKeys), 1},
		{"maxPopPollingSize", p.MaxPopPolling, 0},
		{"popCkStayBufferTime", int64(p.PopStay), 0},
		{"popCkStayBufferTimeOut", int64(p.PopEarly), 0},
		{"popCkMaxBufferSize", int64(p.PopMaxPoints), 0},
		{"popCkOffsetMaxQueueSize", int64(p.PopMaxOffsets), 0},
		{"reviveInterval", int64(p.ReviveEvery), 1},
		{"reviveScanTime", int64(p.ReviveScan), 1},
		{"loadBalancePollNameServerInterval", int64(p.RoutePollEvery), 1},
	}
}

func (p *Pop) validate() error {
	if p.RequestMode != modePull && p.RequestMode != modePop {
		return fmt.Errorf("defaultMessageRequestMode: must be PULL or POP, got %q", p.RequestMode)
	}
	return nil
}

// ackMarginMs is how long before the end of a checkpoint's stay in the buffer
// acks go to the log instead: Apache's constant.
const ackMarginMs = 1500

func (p *Pop) limits() pop.Limits {
	return pop.Limits{
		Merge: p.PopMerge, Stay: p.PopStay.Milliseconds(), Early: p.PopEarly.Milliseconds(),
		Points: p.PopMaxPoints, PerQueue: p.PopMaxOffsets, AckMargin: ackMarginMs,
	}
}
