package message

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of names, in characters (which are bytes, since only ASCII is allowed).
const (
	MaxTopicLen      = 127 // of a topic
	MaxRetryTopicLen = 255 // of a topic that starts with %RETRY% or %DLQ%
	MaxGroupLen      = 120 // of a consumer or producer group, at the broker
)

// Prefixes of topics that belong to a group or to a lite queue.
const (
	RetryTopicPrefix = "%RETRY%"
	DLQTopicPrefix   = "%DLQ%"
	LMQTopicPrefix   = "%LMQ%"

	SystemTopicPrefix = "rmq_sys_"
	SystemGroupPrefix = "CID_RMQ_SYS_"
)

// Topics that a broker keeps for itself.
const (
	TopicAutoCreate        = "TBW102" // its settings are copied when a send creates a topic
	TopicSchedule          = "SCHEDULE_TOPIC_XXXX"
	TopicBenchmark         = "BenchmarkTest"
	TopicHalf              = "RMQ_SYS_TRANS_HALF_TOPIC"
	TopicHalfOp            = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	TopicRocksDBHalf       = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
	TopicRocksDBHalfOp     = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
	TopicTransCheckMaxTime = "TRANS_CHECK_MAX_TIME_TOPIC"
	TopicTrace             = "RMQ_SYS_TRACE_TOPIC"
	TopicSelfTest          = "SELF_TEST_TOPIC"
	TopicOffsetMoved       = "OFFSET_MOVED_EVENT"
	TopicCheckpoint        = "CHECKPOINT_TOPIC"
	TopicTimer             = "rmq_sys_wheel_timer"
	TopicReviveLogPrefix   = "rmq_sys_REVIVE_LOG_"
	TopicSyncBrokerMember  = "rmq_sys_SYNC_BROKER_MEMBER_" // + broker name
	TopicReplySuffix       = "_REPLY_TOPIC"                // cluster name before it
	GroupTools             = "TOOLS_CONSUMER"
	GroupTransaction       = "CID_RMQ_SYS_TRANS"
)

var systemTopics = map[string]bool{
	TopicAutoCreate: true, TopicSchedule: true, TopicBenchmark: true, TopicHalf: true, TopicHalfOp: true,
	TopicRocksDBHalf: true, TopicRocksDBHalfOp: true, TopicTransCheckMaxTime: true, TopicTrace: true,
	TopicSelfTest: true, TopicOffsetMoved: true, TopicCheckpoint: true,
}

// unsendableTopics refuse messages from clients (NO_PERMISSION).
var unsendableTopics = map[string]bool{
	TopicSchedule: true, TopicHalf: true, TopicHalfOp: true, TopicRocksDBHalf: true, TopicRocksDBHalfOp: true,
	TopicTransCheckMaxTime: true, TopicSelfTest: true, TopicOffsetMoved: true,
}

// systemGroups are the groups that a broker creates for itself.
var systemGroups = map[string]bool{
	GroupTools: true, "FILTERSRV_CONSUMER": true, "SELF_TEST_C_GROUP": true, "CID_ONS-HTTP-PROXY": true,
	"CID_ONSAPI_PULL": true, "CID_ONSAPI_PERMISSION": true, "CID_ONSAPI_OWNER": true, GroupTransaction: true,
}

// NameError says why a topic or group name is not allowed.
type NameError struct {
	Kind  string // "topic" or "group"
	Name  string
	Limit int  // the limit the name exceeds, in characters; 0 when length is not the reason
	Char  rune // the first character that is not allowed; 0 when no character is the reason
	Pos   int  // its place, in bytes from 0
}

// Error names the rule that is broken and what breaks it.
func (e *NameError) Error() string {
	switch {
	case e.Limit > 0:
		return fmt.Sprintf("%s %s is %d characters long, the limit is %d", e.Kind, quoteShort(e.Name), len(e.Name), e.Limit)
	case e.Name == "":
		return e.Kind + " name is empty"
	default:
		return fmt.Sprintf("%s %s has %q at position %d, allowed are letters, digits and %% | - _",
			e.Kind, quoteShort(e.Name), e.Char, e.Pos)
	}
}

// quoteShort quotes a name for an error text, cut to a readable length.
func quoteShort(name string) string {
	const most = 300
	if len(name) <= most {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%q…", name[:most])
}

// ValidateTopic reports with a *NameError that name cannot be a topic: 1 to 127 characters of letters, digits and
// % | - _, up to 255 if it starts with %RETRY% or %DLQ%. The same rule holds for create, send and subscribe.
func ValidateTopic(name string) error {
	limit := MaxTopicLen
	if IsRetry(name) || IsDLQ(name) {
		limit = MaxRetryTopicLen
	}
	return validateName("topic", name, limit)
}

// ValidateGroup reports with a *NameError that name cannot be a consumer or producer group: 1 to 120 characters of
// the set that ValidateTopic allows.
func ValidateGroup(name string) error { return validateName("group", name, MaxGroupLen) }

func validateName(kind, name string, limit int) error {
	if name == "" {
		return &NameError{Kind: kind}
	}
	for i := range len(name) {
		if !nameChar[name[i]] {
			r, _ := utf8.DecodeRuneInString(name[i:])
			return &NameError{Kind: kind, Name: name, Char: r, Pos: i}
		}
	}
	if len(name) > limit {
		return &NameError{Kind: kind, Name: name, Limit: limit}
	}
	return nil
}

var nameChar = func() (t [256]bool) {
	for _, c := range []byte("%|-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

// RetryTopic returns the topic that holds a group's messages for another attempt.
func RetryTopic(group string) string { return RetryTopicPrefix + group }

// DLQTopic returns the topic that holds a group's dead letters.
func DLQTopic(group string) string { return DLQTopicPrefix + group }

// IsRetry reports whether topic is a group's retry topic.
func IsRetry(topic string) bool { return strings.HasPrefix(topic, RetryTopicPrefix) }

// IsDLQ reports whether topic is a group's dead letter topic.
func IsDLQ(topic string) bool { return strings.HasPrefix(topic, DLQTopicPrefix) }

// NamesDirectory reports whether a name of a topic or light queue, whoever wrote it into a record, can be that of one
// directory: a queue's files lie in it. One with a slash or of dots alone would lead elsewhere.
func NamesDirectory[S ~string | ~[]byte](name S) bool {
	if len(name) == 0 || len(name) > 255 || string(name) == "." || string(name) == ".." {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c == '/' || c == 0 || c == filepath.Separator {
			return false
		}
	}
	return true
}

// IsLMQ reports whether topic is a lite queue (a view on records of other topics).
func IsLMQ(topic string) bool { return strings.HasPrefix(topic, LMQTopicPrefix) }

// PopRetryTopic returns the topic that holds messages of topic that group popped and did not acknowledge:
// version 2 joins the two with '+', version 1 with '_'.
func PopRetryTopic(group, topic string, v2 bool) string {
	if v2 {
		return RetryTopicPrefix + group + "+" + topic
	}
	return RetryTopicPrefix + group + "_" + topic
}

// IsSystemTopic reports whether the broker keeps topic for itself. Names that depend on the cluster and broker name
// (the topics called like them, and the reply topic) are not known here.
func IsSystemTopic(topic string) bool {
	return systemTopics[topic] || strings.HasPrefix(topic, SystemTopicPrefix)
}

// IsUnsendableTopic reports whether clients may not send to topic (answer NO_PERMISSION).
func IsUnsendableTopic(topic string) bool { return unsendableTopics[topic] }

// IsSystemGroup reports whether the broker keeps group for itself.
func IsSystemGroup(group string) bool {
	return systemGroups[group] || strings.HasPrefix(group, SystemGroupPrefix)
}

// SystemTopics returns the fixed names for which IsSystemTopic holds, sorted.
func SystemTopics() []string { return slices.Sorted(maps.Keys(systemTopics)) }

// SystemGroups returns the fixed names for which IsSystemGroup holds, sorted.
func SystemGroups() []string { return slices.Sorted(maps.Keys(systemGroups)) }
