package cmd

import (
	"strconv"
	"strings"
	"testing"
	"unicode"

	"mqx/remoting"
)

func chinese(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// Every response code that mqx knows is explained in both languages, once.
func TestEveryCodeIsExplained(t *testing.T) {
	seen := map[int32]bool{}
	for i := range codebook {
		e := &codebook[i]
		if seen[e.code] {
			t.Errorf("code %d stands there twice", e.code)
		}
		seen[e.code] = true
		for _, s := range []said{e.meaning, e.todo} {
			if s.en == "" || s.zh == "" || chinese(s.en) {
				t.Errorf("code %d: %+v", e.code, s)
			}
		}
		if !chinese(e.meaning.zh) {
			t.Errorf("code %d is not explained in Chinese: %s", e.code, e.meaning.zh)
		}
	}
	for code := int32(-2000); code <= 10_000; code++ {
		if known := remoting.ResponseName(code) != strconv.Itoa(int(code)); known != seen[code] {
			t.Errorf("code %d (%s): known %v, explained %v", code, remoting.ResponseName(code), known, seen[code])
		}
	}
	for i := range remarks {
		e := &remarks[i]
		if e.part != strings.ToLower(e.part) || e.meaning.en == "" || !chinese(e.meaning.zh) || e.todo.en == "" || e.todo.zh == "" {
			t.Errorf("%q is not explained in both languages", e.part)
		}
	}
}

// The texts that brokers refuse with are found by what does not change in them.
func TestTexts(t *testing.T) {
	for text, part := range map[string]string{
		"[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 209ms, size of queue: 3, stage: send": "[timeout_clean_queue]",
		"[OVERLOAD]system busy, start flow control for a while, stage: pull, wait: 12ms":                                          "[overload]",
		"[REJECTREQUEST]system busy, start flow control for a while":                                                              "[rejectrequest]",
		"[PC_SYNCHRONIZED]broker busy, start flow control for a while. append since 2s":                                           "[pc_synchronized]",
		"service not available now. /data is 91 % full":                                                                           "% full",
		"topic[X] not exist, apply first please!\nSee http://…":                                                                   "apply first please",
		"the broker[10.0.0.1] sending message is forbidden":                                                                       "sending message is forbidden",
		"subscription group no permission, billing":                                                                               "subscription group no permission",
		"queueId[9] is illegal, topic:[T] topicConfig.readQueueNums:[4] consumer:[/1.2.3.4:5]":                                    "is illegal, topic:",
		"MQClientException: No route info of this topic: ORDERS":                                                                  "no route info of this topic",
		"The broker does not support consumer to filter message by SQL92":                                                         "does not support consumer to filter message by sql92",
	} {
		rows := explainText(text, "en")
		if len(rows) == 0 || rows[0][1] != part {
			t.Errorf("%s: %v", text, rows)
		}
	}
	if rows := explainText("CODE: 17  DESC: No topic route info in name server for the topic: X", "zh"); len(rows) != 2 || rows[1][1] != "TOPIC_NOT_EXIST" || !chinese(rows[0][2].(string)) {
		t.Errorf("%v", rows)
	}
	if rows := explainText("code: 170", "en"); len(rows) != 0 {
		t.Errorf("%v", rows)
	}
	if rows := explainText("nothing of the kind", "en"); rows != nil {
		t.Errorf("%v", rows)
	}
}
