package client

import (
	"errors"
	"slices"
	"strings"

	"mqx/message"
	"mqx/remoting"
)

// filter is what a subscription lets through.
type filter struct {
	kind string // remoting.ExpressionTag or ExpressionSQL92
	expr string // as sent to the broker
	tags []string
}

// newFilter takes a tag expression (a || b, * or empty for all) or an SQL92 expression.
func newFilter(tag, sql string) (filter, error) {
	tag, sql = strings.TrimSpace(tag), strings.TrimSpace(sql)
	if sql != "" {
		if tag != "" {
			return filter{}, errors.New("a tag expression and an SQL expression exclude each other")
		}
		return filter{kind: remoting.ExpressionSQL92, expr: sql}, nil
	}
	f := filter{kind: remoting.ExpressionTag, expr: tag}
	if tag == "" || tag == "*" {
		f.expr = "*"
		return f, nil
	}
	for part := range strings.SplitSeq(tag, "||") {
		if part = strings.TrimSpace(part); part != "" {
			f.tags = append(f.tags, part)
		}
	}
	if len(f.tags) == 0 {
		return filter{}, errors.New("the tag expression names no tag")
	}
	return f, nil
}

// pass checks a message again: the broker compares hashes of tags only, and equal
// hashes pass it. SQL is the broker's alone.
func (f *filter) pass(m *message.Received) bool {
	return len(f.tags) == 0 || slices.Contains(f.tags, m.Tags())
}

// subscription is the filter in a heartbeat or as the broker keeps it.
func (f *filter) subscription(topic string, version int64) remoting.SubscriptionData {
	s := remoting.SubscriptionData{
		Topic: topic, SubString: f.expr, ExpressionType: f.kind, SubVersion: version, TagsSet: []string{}, CodeSet: []int32{},
	}
	for _, t := range f.tags {
		if !slices.Contains(s.TagsSet, t) {
			s.TagsSet = append(s.TagsSet, t)
			s.CodeSet = append(s.CodeSet, message.JavaHash([]byte(t)))
		}
	}
	return s
}
