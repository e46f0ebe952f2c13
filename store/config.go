package store

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
)

// Flush modes of the commit log, as broker.conf names them (flushDiskType).
const (
	AsyncFlush = "ASYNC_FLUSH"
	SyncFlush  = "SYNC_FLUSH"
)

// BitMaps computes the bit maps of messages. It is called by whoever builds the queue unit, also while Open recovers.
type BitMaps interface {
	// AppendBitMap appends the bit map of a message to dst; nothing when there is none. topic and props are valid only
	// during the call. It must not block and must not call the store.
	AppendBitMap(dst, topic, props []byte) []byte
}

// Config is everything the store can be told. Field tags `conf` are the keys of
// Apache's broker.conf; units are Apache's and stand at the end of the field names.
// Start from DefaultConfig. A Config is copied by Open and may be reused.
type Config struct {
	// FS is the disk. Nil means the operating system's (vfs.OS).
	FS vfs.FS
	// Clock gives store times and ages of files. Nil means clock.System.
	Clock clock.Clock
	// Logger receives findings and events. Nil means slog.Default().
	Logger *slog.Logger
	// Location is the time zone of index file names and of deleteWhen. Nil means time.Local.
	Location *time.Location
	// OnArrive is called after the queue unit of a message became readable, by whoever built it: the dispatcher's
	// goroutine, or that of the PutBatch which stored the message, before its Done. topic and props alias memory that is
	// only valid during the call. It must not block and must not put. Nil means nobody waits.
	OnArrive func(topic []byte, queueID int32, queueOffset, tagsCode, storeTimestamp int64, props []byte)
	// BatchTopic tells whether the queues of a topic are batch queues (attribute queue.type=BatchCQ). It is asked when a
	// queue comes into being, also while Open recovers, and must not call the store. Nil means none are.
	BatchTopic func(topic string) bool
	// BitMaps computes what extension units say of a message, with EnableConsumeQueueExt. Nil means nothing.
	BitMaps BitMaps
	// Replicas are the slaves that some puts wait for. Nil means none.
	Replicas Replicas
	// Follow says that the log comes from a master by AppendRaw: the store takes no messages of its own.
	Follow bool
	// Gapless is how far the log of a master may have copies, 0 where it has none. A start after a crash that finds a gap in what was not durable ends
	// the log there, as with Follow, so that the copies are seen to have more; else it steps over the gap and keeps what follows.
	Gapless int64
	// Held says that the gate is closed when the store opens (Gate): what had not been shown when the store stopped is not, until
	// Confirm or Ungate shows it.
	Held bool
	// Together, if set, calls the function it is given once: that calls Done of all puts which one flush has made
	// durable, so that they can be answered together. It must not block otherwise.
	Together func(func())
	// HotWindowBytes is the distance from the end of the log within which Get answers with
	// slices of the mapped log, where that was appended since the start. 0 derives it from AccessMessageInMemoryMaxRatio and free memory.
	HotWindowBytes int64
	// PhysicalMemoryBytes is the memory that AccessMessageInMemoryMaxRatio counts from.
	// 0 means the machine's.
	PhysicalMemoryBytes int64
	// MaxOpenFiles bounds the descriptors that consume queues keep open together. 0 means 512.
	MaxOpenFiles int
	// MaxOpenLogFiles bounds the files of the log that are kept open beside those not flushed yet. 0 means 256.
	MaxOpenLogFiles int

	// RootDir is the store directory.
	RootDir string `conf:"storePathRootDir"`
	// CommitLogDir is the commit log directory; empty means RootDir/commitlog.
	CommitLogDir string `conf:"storePathCommitLog"`

	// CommitLogFileBytes is the size of a new commit log file when the directory is empty;
	// a size found on disk wins.
	CommitLogFileBytes int `conf:"mappedFileSizeCommitLog"`
	// ConsumeQueueFileBytes is the size of a new consume queue file, rounded up to a
	// multiple of 20; a size found on disk wins, per queue.
	ConsumeQueueFileBytes int `conf:"mappedFileSizeConsumeQueue"`
	// EnableConsumeQueueExt writes extension units, which hold bit maps of the groups that want a message.
	EnableConsumeQueueExt bool `conf:"enableConsumeQueueExt"`
	// ConsumeQueueExtFileBytes is the size of the files of extension units.
	ConsumeQueueExtFileBytes int `conf:"mappedFileSizeConsumeQueueExt"`
	// BatchConsumeQueueFileBytes is the same for batch consume queues (units of 46 bytes).
	BatchConsumeQueueFileBytes int `conf:"mapperFileSizeBatchConsumeQueue"`

	// FlushDiskType is ASYNC_FLUSH or SYNC_FLUSH.
	FlushDiskType string `conf:"flushDiskType"`
	// FlushIntervalCommitLogMs is the time between two asynchronous flushes.
	FlushIntervalCommitLogMs int `conf:"flushIntervalCommitLog"`
	// FlushCommitLogLeastPages is the number of dirty 4 KiB pages below which an asynchronous flush waits.
	FlushCommitLogLeastPages int `conf:"flushCommitLogLeastPages"`
	// FlushCommitLogThoroughIntervalMs is the time after which everything is flushed regardless.
	FlushCommitLogThoroughIntervalMs int `conf:"flushCommitLogThoroughInterval"`
	// SyncFlushTimeoutMs is how long a put waits for its flush before FLUSH_DISK_TIMEOUT.
	SyncFlushTimeoutMs int `conf:"syncFlushTimeout"`
	// FlushIntervalConsumeQueueMs is the time between flushes of queues that are dirty.
	FlushIntervalConsumeQueueMs int `conf:"flushIntervalConsumeQueue"`
	// FlushConsumeQueueThoroughIntervalMs is the time between durable rounds of all queues
	// with the checkpoint written behind them.
	FlushConsumeQueueThoroughIntervalMs int `conf:"flushConsumeQueueThoroughInterval"`

	// MaxMessageBytes is the largest body. A record may be 64 KiB larger.
	MaxMessageBytes int `conf:"maxMessageSize"`
	// AppendPropCRC makes every record carry the property __CRC32#.
	AppendPropCRC bool `conf:"enabledAppendPropCRC"`
	// ForceVerifyPropCRC makes recovery verify that property instead of the body CRC.
	ForceVerifyPropCRC bool `conf:"forceVerifyPropCRC"`
	// CheckCRCOnRecover makes recovery verify body CRCs.
	CheckCRCOnRecover bool `conf:"checkCRCOnRecover"`
	// AutoMessageVersion makes topics longer than 127 bytes use record version 2.
	AutoMessageVersion bool `conf:"autoMessageVersionOnTopicLen"`
	// CommitLogRecoverMaxNum is how many commit log files recovery looks back at most when there is no checkpoint.
	CommitLogRecoverMaxNum int `conf:"commitLogRecoverMaxNum"`
	// OSPageCacheBusyTimeoutMs is how long the append lock may be held before puts answer busy.
	OSPageCacheBusyTimeoutMs int64 `conf:"osPageCacheBusyTimeOutMills"`
	// MessageDelayLevel is the table of delay levels; a unit of SCHEDULE_TOPIC_XXXX carries the delivery time.
	MessageDelayLevel string `conf:"messageDelayLevel"`
	// EnableLMQ and EnableMultiDispatch together give a record to the light queues that it names in
	// INNER_MULTI_DISPATCH.
	EnableLMQ           bool `conf:"enableLmq"`
	EnableMultiDispatch bool `conf:"enableMultiDispatch"`
	// EnableLMQQuota bounds the light queues to MaxLMQs.
	EnableLMQQuota bool `conf:"enableLmqQuota"`
	MaxLMQs        int  `conf:"maxLmqConsumeQueueNum"`

	// MessageIndexEnable builds the key index.
	MessageIndexEnable bool `conf:"messageIndexEnable"`
	// IndexFileWriteEnable and IndexFileReadEnable switch the index files off one way.
	IndexFileWriteEnable bool `conf:"indexFileWriteEnable"`
	IndexFileReadEnable  bool `conf:"indexFileReadEnable"`
	// MaxHashSlotNum and MaxIndexNum are the slots and entries of a new index file.
	MaxHashSlotNum int `conf:"maxHashSlotNum"`
	MaxIndexNum    int `conf:"maxIndexNum"`
	// MaxMsgsNumBatch caps the messages of a key query.
	MaxMsgsNumBatch int `conf:"maxMsgsNumBatch"`
	// DefaultQueryMaxNum caps the messages of a unique key query.
	DefaultQueryMaxNum int `conf:"defaultQueryMaxNum"`

	// MaxTransferBytesOnMessageInMemory and the three after it bound one Get.
	MaxTransferBytesOnMessageInMemory int `conf:"maxTransferBytesOnMessageInMemory"`
	MaxTransferCountOnMessageInMemory int `conf:"maxTransferCountOnMessageInMemory"`
	MaxTransferBytesOnMessageInDisk   int `conf:"maxTransferBytesOnMessageInDisk"`
	MaxTransferCountOnMessageInDisk   int `conf:"maxTransferCountOnMessageInDisk"`
	// AccessMessageInMemoryMaxRatio is the percentage of memory that counts as the cached end of the log.
	AccessMessageInMemoryMaxRatio int `conf:"accessMessageInMemoryMaxRatio"`
	// MaxFilterMessageBytes is how many bytes of queue units a filtered Get examines.
	MaxFilterMessageBytes int `conf:"maxFilterMessageSize"`
	// TravelCQFileNumWhenGetMessage is how many queue files a filtered Get visits.
	TravelCQFileNumWhenGetMessage int `conf:"travelCqFileNumWhenGetMessage"`

	// CleanResourceIntervalMs is the time between rounds of expiry.
	CleanResourceIntervalMs int `conf:"cleanResourceInterval"`
	// DeleteCommitLogFilesIntervalMs is the pause between two deletions.
	DeleteCommitLogFilesIntervalMs int `conf:"deleteCommitLogFilesInterval"`
	// DeleteFileBatchMax is the number of commit log files a round deletes at most.
	DeleteFileBatchMax int `conf:"deleteFileBatchMax"`
	// DeleteWhen lists the hours of the day (`;` between them) at which expired files go.
	DeleteWhen string `conf:"deleteWhen"`
	// FileReservedHours is how long a commit log file is kept after its last write.
	FileReservedHours int `conf:"fileReservedTime"`
	// DiskMaxUsedRatio, DiskCleanForciblyRatio and DiskWarningRatio are the watermarks in percent.
	DiskMaxUsedRatio       int `conf:"diskMaxUsedSpaceRatio"`
	DiskCleanForciblyRatio int `conf:"diskSpaceCleanForciblyRatio"`
	DiskWarningRatio       int `conf:"diskSpaceWarningLevelRatio"`
	// CleanFileForciblyEnable allows deletion of files that are not expired above DiskCleanForciblyRatio.
	CleanFileForciblyEnable bool `conf:"cleanFileForciblyEnable"`
}

// DefaultConfig returns Apache's defaults. RootDir is left empty.
func DefaultConfig() Config {
	return Config{
		CommitLogFileBytes:                  1 << 30,
		ConsumeQueueFileBytes:               6_000_000,
		BatchConsumeQueueFileBytes:          13_800_000,
		ConsumeQueueExtFileBytes:            50_331_648,
		FlushDiskType:                       AsyncFlush,
		FlushIntervalCommitLogMs:            500,
		FlushCommitLogLeastPages:            4,
		FlushCommitLogThoroughIntervalMs:    10_000,
		SyncFlushTimeoutMs:                  5_000,
		FlushIntervalConsumeQueueMs:         1_000,
		FlushConsumeQueueThoroughIntervalMs: 60_000,
		MaxMessageBytes:                     4 << 20,
		CheckCRCOnRecover:                   true,
		AutoMessageVersion:                  true,
		CommitLogRecoverMaxNum:              10,
		OSPageCacheBusyTimeoutMs:            1_000,
		MessageDelayLevel:                   "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
		MessageIndexEnable:                  true,
		IndexFileWriteEnable:                true,
		IndexFileReadEnable:                 true,
		MaxHashSlotNum:                      5_000_000,
		MaxIndexNum:                         20_000_000,
		MaxMsgsNumBatch:                     64,
		DefaultQueryMaxNum:                  32,
		MaxTransferBytesOnMessageInMemory:   262_144,
		MaxTransferCountOnMessageInMemory:   32,
		MaxTransferBytesOnMessageInDisk:     65_536,
		MaxLMQs:                             20000,
		MaxTransferCountOnMessageInDisk:     8,
		AccessMessageInMemoryMaxRatio:       40,
		MaxFilterMessageBytes:               16_000,
		TravelCQFileNumWhenGetMessage:       1,
		CleanResourceIntervalMs:             10_000,
		DeleteCommitLogFilesIntervalMs:      100,
		DeleteFileBatchMax:                  10,
		DeleteWhen:                          "04",
		FileReservedHours:                   72,
		DiskMaxUsedRatio:                    75,
		DiskCleanForciblyRatio:              85,
		DiskWarningRatio:                    90,
		CleanFileForciblyEnable:             true,
	}
}

// Validate reports every value that the store cannot work with, joined.
func (c *Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if c.RootDir == "" {
		bad("storePathRootDir", "must not be empty")
	}
	if strings.Contains(c.CommitLogDir, ",") {
		bad("storePathCommitLog", "several commit log directories are not served, got %q", c.CommitLogDir)
	}
	if c.FlushDiskType != AsyncFlush && c.FlushDiskType != SyncFlush {
		bad("flushDiskType", "must be %s or %s, got %q", AsyncFlush, SyncFlush, c.FlushDiskType)
	}
	if _, err := parseHours(c.DeleteWhen); err != nil {
		bad("deleteWhen", "%v", err)
	}
	if _, err := ParseDelayLevels(c.MessageDelayLevel); err != nil {
		bad("messageDelayLevel", "%v", err)
	}
	if c.DiskMaxUsedRatio < 10 || c.DiskMaxUsedRatio > 100 {
		bad("diskMaxUsedSpaceRatio", "must be 10 to 100, got %d", c.DiskMaxUsedRatio)
	}
	for _, p := range c.positives() {
		if p.value < p.least {
			bad(p.key, "must be at least %d, got %d", p.least, p.value)
		}
	}
	return errors.Join(errs...)
}

type bound struct {
	key          string
	value, least int64
}

func (c *Config) positives() []bound {
	return []bound{
		{"mappedFileSizeCommitLog", int64(c.CommitLogFileBytes), 4096},
		{"mappedFileSizeConsumeQueue", int64(c.ConsumeQueueFileBytes), 20},
		{"mapperFileSizeBatchConsumeQueue", int64(c.BatchConsumeQueueFileBytes), 46},
		{"mappedFileSizeConsumeQueueExt", int64(c.ConsumeQueueExtFileBytes), 256},
		{"flushIntervalCommitLog", int64(c.FlushIntervalCommitLogMs), 1},
		{"flushCommitLogThoroughInterval", int64(c.FlushCommitLogThoroughIntervalMs), 0},
		{"syncFlushTimeout", int64(c.SyncFlushTimeoutMs), 1},
		{"flushIntervalConsumeQueue", int64(c.FlushIntervalConsumeQueueMs), 1},
		{"flushConsumeQueueThoroughInterval", int64(c.FlushConsumeQueueThoroughIntervalMs), 0},
		{"maxMessageSize", int64(c.MaxMessageBytes), 1},
		{"commitLogRecoverMaxNum", int64(c.CommitLogRecoverMaxNum), 1},
		{"osPageCacheBusyTimeOutMills", c.OSPageCacheBusyTimeoutMs, 1},
		{"maxHashSlotNum", int64(c.MaxHashSlotNum), 1},
		{"maxIndexNum", int64(c.MaxIndexNum), 2},
		{"maxMsgsNumBatch", int64(c.MaxMsgsNumBatch), 1},
		{"defaultQueryMaxNum", int64(c.DefaultQueryMaxNum), 1},
		{"maxTransferBytesOnMessageInMemory", int64(c.MaxTransferBytesOnMessageInMemory), 1},
		{"maxTransferCountOnMessageInMemory", int64(c.MaxTransferCountOnMessageInMemory), 1},
		{"maxTransferBytesOnMessageInDisk", int64(c.MaxTransferBytesOnMessageInDisk), 1},
		{"maxTransferCountOnMessageInDisk", int64(c.MaxTransferCountOnMessageInDisk), 1},
		{"maxFilterMessageSize", int64(c.MaxFilterMessageBytes), 1},
		{"travelCqFileNumWhenGetMessage", int64(c.TravelCQFileNumWhenGetMessage), 1},
		{"cleanResourceInterval", int64(c.CleanResourceIntervalMs), 1},
		{"deleteFileBatchMax", int64(c.DeleteFileBatchMax), 1},
		{"fileReservedTime", int64(c.FileReservedHours), 0},
	}
}

// watermarks returns the three disk ratios in percent with Apache's clamps applied.
func (c *Config) watermarks() (reclaim, force, refuse int) {
	force = min(max(c.DiskCleanForciblyRatio, 30), 85)
	refuse = min(max(c.DiskWarningRatio, 35), 90)
	return min(c.DiskMaxUsedRatio, 95), force, refuse
}

func (c *Config) commitLogDir() string {
	if c.CommitLogDir != "" {
		return c.CommitLogDir
	}
	return filepath.Join(c.RootDir, "commitlog")
}
