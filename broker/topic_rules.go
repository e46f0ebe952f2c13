package broker

import (
	"errors"
	"fmt"

	"mqx/message"
	"mqx/remoting"
)

// maxQueues bounds the queues of one topic.
const maxQueues = remoting.MaxForwardQueues

// Unit flags of a topic (topicSysFlag).
const (
	sysFlagUnit    = 1
	sysFlagUnitSub = 2
)

// refusedError is a request that is answered with Code and Text.
type refusedError struct {
	Code int32
	Text string
}

func (e *refusedError) Error() string { return e.Text }

func refuse(code int32, format string, args ...any) *refusedError {
	return &refusedError{Code: code, Text: fmt.Sprintf(format, args...)}
}

// asRefused gives any error a code and text to answer with.
func asRefused(err error) *refusedError {
	var r *refusedError
	if errors.As(err, &r) {
		return r
	}
	var a *attributeError
	if errors.As(err, &a) && a.NotServed {
		return refuse(remoting.RespInvalidParameter, "%s", a.Text)
	}
	var n *message.NameError
	if errors.As(err, &n) {
		return refuse(remoting.RespInvalidParameter, "%s", n.Error())
	}
	return refuse(remoting.RespSystemError, "%s", err.Error())
}

// autoCreated is the configuration of a topic that a send creates: nil when the
// rules do not allow it. template is the topic the producer names as its
// default, nil when it does not exist. With enabled false no template helps.
func autoCreated(enabled bool, name string, template *remoting.TopicConfig, clientQueues, sysFlag int32) *remoting.TopicConfig {
	if !enabled || template == nil || !inherited(template.Perm) {
		return nil
	}
	c := remoting.NewTopicConfig(name)
	n := max(0, min(clientQueues, template.WriteQueueNums))
	c.ReadQueueNums, c.WriteQueueNums = n, n
	c.Perm = template.Perm &^ permInherit
	c.TopicFilterType = template.TopicFilterType
	c.TopicSysFlag = sysFlag
	return &c
}

// createTopic turns a request to create or change a topic into its new
// configuration, or refuses it.
func (t *topicTable) createTopic(h *remoting.CreateTopicHeader, validateSystem, mixed bool) (remoting.TopicConfig, error) {
	changes, err := parseAttributes(h.Attributes)
	if err != nil {
		return remoting.TopicConfig{}, err
	}
	c := remoting.NewTopicConfig(h.Topic)
	c.ReadQueueNums, c.WriteQueueNums = h.ReadQueueNums, h.WriteQueueNums
	c.Perm, c.TopicSysFlag, c.Order = h.Perm, h.TopicSysFlag, h.Order
	c.TopicFilterType = h.TopicFilterType
	return t.checkTopic(c, changes, validateSystem, mixed)
}

// checkTopic refuses what is not a topic and merges its attributes.
func (t *topicTable) checkTopic(c remoting.TopicConfig, changes map[string]string, validateSystem, mixed bool) (remoting.TopicConfig, error) {
	if err := message.ValidateTopic(c.TopicName); err != nil {
		return c, err
	}
	if validateSystem && t.rules.isSystem(c.TopicName) {
		return c, refuse(remoting.RespInvalidParameter, "The topic[%s] is conflict with system topic.", c.TopicName)
	}
	if t.light && isLight(c.TopicName) { // Apache answers success and does nothing
		return c, refuse(remoting.RespInvalidParameter, "%s is a light queue: it has one queue that may be read and written, and no configuration", c.TopicName)
	}
	if c.Perm < 0 || c.Perm > 7 {
		return c, refuse(remoting.RespInvalidParameter, "perm %d is no mask of 4 (read), 2 (write) and 1 (inherit)", c.Perm)
	}
	for _, n := range []int32{c.ReadQueueNums, c.WriteQueueNums} {
		if n < 0 || n > maxQueues {
			return c, refuse(remoting.RespInvalidParameter, "%d queues are out of range 0 to %d", n, maxQueues)
		}
	}
	switch c.TopicFilterType {
	case remoting.FilterSingleTag, remoting.FilterMultiTag:
	case "":
		c.TopicFilterType = remoting.FilterSingleTag
	default:
		return c, refuse(remoting.RespInvalidParameter, "topicFilterType %q is neither SINGLE_TAG nor MULTI_TAG", c.TopicFilterType)
	}
	var current map[string]string
	old := t.Get(c.TopicName)
	if old != nil {
		current = old.Attributes
	} else if t.Len() >= maxTopics {
		return c, refuse(remoting.RespSystemError, "the broker has %d topics, which is the limit", maxTopics)
	}
	merged, err := alterAttributes(topicAttributes, old == nil, current, changes, mixed)
	if err != nil {
		return c, err
	}
	_, asked := changes["+"+remoting.AttrForward]
	if old != nil && !asked && !writable(old.Perm) && writable(c.Perm) {
		delete(merged, remoting.AttrForward) // it is written here again
	}
	c.Attributes = merged
	return c, nil
}

// groupTopic is the configuration of a retry or dead-letter topic.
func groupTopic(name string, queues int32, sysFlag int32) remoting.TopicConfig {
	c := remoting.NewTopicConfig(name)
	c.ReadQueueNums, c.WriteQueueNums = queues, queues
	c.Perm, c.TopicSysFlag = permRead|permWrite, sysFlag
	return c
}

// signed gives plain attributes, as a topic list carries them, their plus sign.
func signed(attrs map[string]string) map[string]string {
	out := make(map[string]string, len(attrs))
	for k, v := range attrs {
		if k != "" && k[0] != '+' && k[0] != '-' {
			k = "+" + k
		}
		out[k] = v
	}
	return out
}
