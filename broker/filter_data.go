package broker

import (
	"fmt"
	"time"

	"mqx/filter"
	"mqx/remoting"
	"mqx/store"
)

// filterData is what a group wants of a topic by an expression, and since when. It is replaced, never changed.
type filterData struct {
	topic, group    string
	expression, typ string
	version         int64 // of the client's subscription
	born, died      int64 // ms since 1970; died is 0 while the group subscribes to the topic
	bits            []int32
	bitNum          int
	bloomFits       bool               // bits belong to the broker's bloom filter
	compiled        *filter.Expression // nil when the text of a file cannot be compiled
}

// newFilterData compiles an expression. It has no bits yet.
func newFilterData(topic, group, expr, typ string) (*filterData, error) {
	if typ != remoting.ExpressionSQL92 {
		return nil, fmt.Errorf("the expression type %q is neither %s nor %s", typ, remoting.ExpressionTag, remoting.ExpressionSQL92)
	}
	e, err := filter.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &filterData{topic: topic, group: group, expression: expr, typ: typ, compiled: e}, nil
}

// dead reports whether the group does not subscribe to the topic any more.
func (d *filterData) dead() bool { return d.died >= d.born }

// deadSince is how long that has been so.
func (d *filterData) deadSince(now time.Time) time.Duration {
	if !d.dead() {
		return 0
	}
	return time.Duration(now.UnixMilli()-d.died) * time.Millisecond
}

// mayMatch reports whether a message may fulfil the expression, by the bit map of its extension unit. It decides only what
// it can: the map was computed with this expression when the message is younger than the subscription, and it has this
// filter's length.
func (d *filterData) mayMatch(u store.ExtUnit) bool {
	if !d.bloomFits || u.StoreTime <= d.born || len(u.BitMap)*8 != d.bitNum {
		return true
	}
	return filter.Hit(u.BitMap, d.bits)
}

// The form of consumerFilter.json, which is Apache's: docs/format/layout.md.
type (
	filterFile struct {
		FilterDataByTopic map[string]*topicFilters `json:"filterDataByTopic"`
	}
	topicFilters struct {
		GroupFilterData map[string]*storedFilter `json:"groupFilterData"`
		Topic           string                   `json:"topic"`
	}
	storedFilter struct {
		BloomFilterData *storedBits `json:"bloomFilterData,omitempty"`
		BornTime        int64       `json:"bornTime"`
		ClientVersion   int64       `json:"clientVersion"`
		ConsumerGroup   string      `json:"consumerGroup"`
		Dead            bool        `json:"dead"`
		DeadTime        int64       `json:"deadTime"`
		Expression      string      `json:"expression"`
		ExpressionType  string      `json:"expressionType"`
		Topic           string      `json:"topic"`
	}
	storedBits struct {
		BitNum int     `json:"bitNum"`
		BitPos []int32 `json:"bitPos"`
	}
)

func (d *filterData) stored() *storedFilter {
	s := &storedFilter{
		BornTime: d.born, ClientVersion: d.version, ConsumerGroup: d.group, Dead: d.dead(), DeadTime: d.died,
		Expression: d.expression, ExpressionType: d.typ, Topic: d.topic,
	}
	if d.bits != nil {
		s.BloomFilterData = &storedBits{BitNum: d.bitNum, BitPos: d.bits}
	}
	return s
}
