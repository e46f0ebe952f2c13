package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mqx/remoting"
)

// The longest names that clients and broker allow: a topic of 127 characters and a group of 120. The messages that a pop consumer
// fails go through a topic whose name has 255 bytes, more than a record of the first version can hold, and come back as those of
// their own topic; so do those of a push consumer, whose retry topic has 127. Everything can be deleted afterwards.
func TestLongNames(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "messageDelayLevel=1s 1s 1s 1s")
	d := sharedDriver(t)
	topic, group := strings.Repeat("t", 127), strings.Repeat("g", 120)
	createTopic(t, c.namesrv, topic, 1)
	if out := d.admin(t, "setConsumeMode", "-b", c.broker, "-t", topic, "-g", group, "-m", "POP", "-q", "8"); !strings.Contains(out, "success") {
		t.Fatalf("setConsumeMode: %s", out)
	}
	out := numbered("long", 6)
	out[2].Body = "fail-once " + out[2].Body
	pushed := strings.Repeat("p", 120)
	for _, tt := range []struct {
		group string
		more  map[string]any
	}{{group, map[string]any{"serverRebalance": true}}, {pushed, nil}} {
		received := pushOf(t, d, c, topic, tt.group, tt.more)
		if tt.group == group {
			d.send(t, c.namesrv, topic, "sync", out, nil)
		}
		waitFor(t, arrival+popArrival, "the messages", func() (bool, string) {
			n := len(received())
			return n >= len(out)+1, fmt.Sprint(n)
		})
		times := map[string]int{}
		for _, m := range received() {
			times[string(m.Body)]++
			if m.Topic != topic {
				t.Errorf("%.7s: a message of topic %s", tt.group, m.Topic)
			}
		}
		if times[out[2].Body] != 2 || len(times) != len(out) {
			t.Errorf("%.7s: came %v", tt.group, times)
		}
	}
	retry := "%RETRY%" + group + "_" + topic
	if len(retry) != 255 {
		t.Fatal(len(retry))
	}
	resp := rawCall(t, c.broker, remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: retry}, nil)
	if resp.Code != 0 || resp.Fields.String("offset") != "1" {
		t.Errorf("the long retry topic: %d %s %v", resp.Code, resp.Remark, resp.Fields)
	}
	if resp := rawCall(t, c.broker, remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: topic}, nil); resp.Code != 0 {
		t.Errorf("the topic cannot be deleted: %d %s", resp.Code, resp.Remark)
	}
	if resp := rawCall(t, c.broker, remoting.ReqGetTopicConfig, &remoting.GetTopicConfigHeader{Topic: retry}, nil); resp.Code != remoting.RespTopicNotExist {
		t.Errorf("its retry topic is left: %d %s", resp.Code, resp.Remark)
	}
}

// Clients in unit mode mark what is made for them: the topic of a producer is a unit topic, the retry topic of a consumer one with
// subscriptions of a unit; the name server lists both.
func TestUnitMarks(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "autoCreateTopicEnable=true")
	d := sharedDriver(t)
	const topic, group = "E2E_UNIT", "GID_unit"
	out := numbered("unit", 4)
	d.send(t, c.namesrv, topic, "sync", out, map[string]any{"unit": true})
	received := pushOf(t, d, c, topic, group, map[string]any{"unit": true})
	waitFor(t, arrival, "the messages", func() (bool, string) {
		n := len(received())
		return n >= len(out), fmt.Sprint(n)
	})
	if why := missing(out, received()); why != "" {
		t.Error(why)
	}
	for name, want := range map[string]float64{topic: 1, "%RETRY%" + group: 2} {
		resp := rawCall(t, c.broker, remoting.ReqGetTopicConfig, &remoting.GetTopicConfigHeader{Topic: name}, nil)
		var config map[string]any
		if err := json.Unmarshal(resp.Body, &config); err != nil || config["topicSysFlag"] != want {
			t.Errorf("%s: %v %s (%v)", name, config["topicSysFlag"], resp.Body, err)
		}
	}
	for code, name := range map[int32]string{remoting.ReqGetUnitTopicList: topic, remoting.ReqGetHasUnitSubTopicList: "%RETRY%" + group} {
		waitFor(t, arrival, "the list of "+name, func() (bool, string) {
			resp := rawCall(t, c.namesrv, code, nil, nil)
			var list struct {
				TopicList []string `json:"topicList"`
			}
			err := json.Unmarshal(resp.Body, &list)
			return err == nil && slices.Contains(list.TopicList, name), fmt.Sprint(resp.Code, resp.Remark, list.TopicList, err)
		})
	}
}
