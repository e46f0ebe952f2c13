package message_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mqx/message"
)

func TestValidateNames(t *testing.T) {
	long := strings.Repeat("x", 121)
	for _, tt := range []struct {
		validate func(string) error
		name     string
		want     string
	}{
		{message.ValidateTopic, "TopicA", ""},
		{message.ValidateTopic, "%|-_09azAZ", ""},
		{message.ValidateTopic, strings.Repeat("t", 127), ""},
		{message.ValidateTopic, "%RETRY%" + strings.Repeat("g", 248), ""},
		{message.ValidateTopic, "%DLQ%" + strings.Repeat("g", 250), ""},
		{message.ValidateTopic, "", "topic name is empty"},
		{message.ValidateTopic, "a.b", `topic "a.b" has '.' at position 1, allowed are letters, digits and % | - _`},
		{message.ValidateTopic, "a b", `topic "a b" has ' ' at position 1, allowed are letters, digits and % | - _`},
		{message.ValidateTopic, "a+b", `topic "a+b" has '+' at position 1, allowed are letters, digits and % | - _`},
		{message.ValidateTopic, "x属性", `topic "x属性" has '属' at position 1, allowed are letters, digits and % | - _`},
		{message.ValidateTopic, "x\xff", `topic "x\xff" has '�' at position 1, allowed are letters, digits and % | - _`},
		{message.ValidateTopic, "%RETRY%" + strings.Repeat("g", 249), "is 256 characters long, the limit is 255"},
		{message.ValidateTopic, strings.Repeat("t", 128), "is 128 characters long, the limit is 127"},
		{message.ValidateTopic, "%LMQ%" + strings.Repeat("t", 123), "is 128 characters long, the limit is 127"},
		{message.ValidateGroup, long[:120], ""},
		{message.ValidateGroup, long, `group "` + long + `" is 121 characters long, the limit is 120`},
		{message.ValidateGroup, "", "group name is empty"},
		{message.ValidateGroup, "g/h", `group "g/h" has '/' at position 1, allowed are letters, digits and % | - _`},
	} {
		err := tt.validate(tt.name)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%q: %v", tt.name, err)
			}
			continue
		}
		var e *message.NameError
		if !errors.As(err, &e) || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.name, err, tt.want)
		}
	}
	if err := message.ValidateTopic(strings.Repeat("t", 1<<20)); len(err.Error()) > 500 {
		t.Error("the error repeats all of a long name")
	}
}

func TestKindsOfTopics(t *testing.T) {
	for _, tt := range []struct {
		topic                               string
		retry, dlq, lmq, system, unsendable bool
	}{
		{"TopicA", false, false, false, false, false},
		{message.RetryTopic("g"), true, false, false, false, false},
		{message.DLQTopic("g"), false, true, false, false, false},
		{message.PopRetryTopic("g", "t", false), true, false, false, false, false},
		{"%LMQ%x", false, false, true, false, false},
		{"TBW102", false, false, false, true, false},
		{"SCHEDULE_TOPIC_XXXX", false, false, false, true, true},
		{"RMQ_SYS_TRANS_HALF_TOPIC", false, false, false, true, true},
		{"rmq_sys_wheel_timer", false, false, false, true, false},
		{"rmq_sys_REVIVE_LOG_c", false, false, false, true, false},
		{"RMQ_SYS_TRACE_TOPIC", false, false, false, true, false},
	} {
		if message.IsRetry(tt.topic) != tt.retry || message.IsDLQ(tt.topic) != tt.dlq || message.IsLMQ(tt.topic) != tt.lmq ||
			message.IsSystemTopic(tt.topic) != tt.system || message.IsUnsendableTopic(tt.topic) != tt.unsendable {
			t.Errorf("%s is taken for something else", tt.topic)
		}
	}
	if got := message.PopRetryTopic("g", "t", false) + message.PopRetryTopic("g", "t", true); got != "%RETRY%g_t%RETRY%g+t" {
		t.Errorf("pop retry topics %s", got)
	}
	for _, topic := range message.SystemTopics() {
		if !message.IsSystemTopic(topic) {
			t.Errorf("%s is no system topic", topic)
		}
	}
	groups := message.SystemGroups()
	if !slices.IsSorted(groups) || !slices.Contains(groups, "TOOLS_CONSUMER") || !message.IsSystemGroup("TOOLS_CONSUMER") ||
		!message.IsSystemGroup("CID_RMQ_SYS_x") || message.IsSystemGroup("G") {
		t.Errorf("system groups %v", groups)
	}
}
