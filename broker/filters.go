package broker

import (
	"strings"

	"mqx/filter"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

// msgFilter is what a subscription lets pass. nil lets everything pass.
type msgFilter interface {
	store.MessageFilter
	// MatchProperties looks at the properties of a message that MatchCQ lets pass, while its record is not at hand.
	MatchProperties(props []byte) bool
}

// tagFilter lets messages pass by the hash of their tag.
type tagFilter struct{ tags *filter.Tags }

// MatchCQ looks at the tags code of a queue unit.
func (f tagFilter) MatchCQ(tagsCode int64) bool { return f.tags.Match(tagsCode) }

// MatchRecord passes: the client compares the texts of tags.
func (f tagFilter) MatchRecord(message.View) bool { return true }

// MatchProperties passes for the same reason.
func (f tagFilter) MatchProperties([]byte) bool { return true }

// tagFilterOf is newTagFilter, and nil for other types: their filter is in the filter table. A subscription in class filter mode
// has none either: all messages pass, as with Apache, whose filter servers are gone.
func tagFilterOf(sub *remoting.SubscriptionData) msgFilter {
	if !isTagType(sub.ExpressionType) || sub.ClassFilterMode {
		return nil
	}
	return newTagFilter(sub)
}

// newTagFilter is the filter of a subscription of type TAG, nil when all pass.
func newTagFilter(sub *remoting.SubscriptionData) msgFilter {
	if filter.IsAllTags(sub.SubString) {
		return nil
	}
	tags := filter.TagsOfCodes(sub.CodeSet)
	if len(sub.CodeSet) == 0 {
		tags = filter.CompileTags(sub.SubString)
	}
	return tagFilter{tags}
}

// exprFilter lets messages pass by an expression over their properties.
type exprFilter struct{ data *filterData }

// MatchCQ passes: tags are properties like others.
func (f exprFilter) MatchCQ(int64) bool { return true }

// MatchExt looks at the bit map that was computed when the message was stored; see filterData.mayMatch.
func (f exprFilter) MatchExt(u store.ExtUnit) bool { return f.data.mayMatch(u) }

// MatchRecord evaluates the expression.
func (f exprFilter) MatchRecord(rec message.View) bool { return f.MatchProperties(rec.Properties()) }

// MatchProperties evaluates the expression.
func (f exprFilter) MatchProperties(props []byte) bool { return f.data.compiled.MatchProperties(props) }

// retryFilter judges the messages of a retry topic by the expression that their group has for the topic they came from;
// without one they pass (filterSupportRetry).
type retryFilter struct {
	table *filterTable
	group string
}

// MatchCQ passes.
func (f retryFilter) MatchCQ(int64) bool { return true }

// MatchRecord evaluates the expression of the message's own topic.
func (f retryFilter) MatchRecord(rec message.View) bool { return f.MatchProperties(rec.Properties()) }

// MatchProperties evaluates the expression of the message's own topic.
func (f retryFilter) MatchProperties(props []byte) bool {
	topic, ok := message.Property(props, message.PropRetryTopic)
	if !ok {
		return true
	}
	d := f.table.Get(topic, []byte(f.group))
	return d == nil || d.compiled == nil || d.compiled.MatchProperties(props)
}

// bloom is the shape of the bit maps of messages.
func (c *Config) bloom() (filter.Bloom, error) {
	return filter.NewBloom(c.BloomErrorPercent, c.ExpectFilterGroups)
}

// isTagType reports whether subscriptions of this type select by tags.
func isTagType(t string) bool { return t == "" || t == remoting.ExpressionTag }

// bitMaps computes the bit maps of messages while enableCalcFilterBitMap is on.
type bitMaps struct{ b *Broker }

// AppendBitMap is part of store.BitMaps.
func (m bitMaps) AppendBitMap(dst, topic, props []byte) []byte {
	if !m.b.cfg().CalcFilterBitMap {
		return dst
	}
	return m.b.filters.AppendBitMap(dst, topic, props)
}

// parseSubscription builds the subscription that a request carries itself; a TAG one is complete.
func parseSubscription(topic, expr, typ string) *subscription {
	sub := remoting.SubscriptionData{Topic: topic, SubString: expr, ExpressionType: exprType(typ)}
	if !isTagType(typ) {
		return &subscription{SubscriptionData: sub}
	}
	if filter.IsAllTags(expr) {
		sub.SubString = filter.AllTags
		return &subscription{SubscriptionData: sub}
	}
	for _, tag := range filter.SplitTags(expr) {
		sub.TagsSet = append(sub.TagsSet, tag)
		sub.CodeSet = append(sub.CodeSet, message.JavaHash([]byte(tag)))
	}
	return &subscription{SubscriptionData: sub, filter: newTagFilter(&sub)}
}

// requestFilter is the filter of a request that carries its expression: pull, pop, peek and notification. nil lets
// everything pass. It refuses what cannot be parsed with SUBSCRIPTION_PARSE_FAILED, and other types than TAG while
// enablePropertyFilter is off.
func (b *Broker) requestFilter(topic, group, expr, typ string) (msgFilter, *refusedError) {
	if isTagType(typ) {
		if expr != "" && len(filter.SplitTags(expr)) == 0 {
			return nil, refuse(remoting.RespSubscriptionParseFailed, "parse the consumer's subscription failed: the tag expression %q names no tag", expr)
		}
		return parseSubscription(topic, expr, typ).filter, nil
	}
	if expr == "" {
		return nil, refuse(remoting.RespSubscriptionParseFailed, "parse the consumer's subscription failed: the %s expression is empty", typ)
	}
	if e := b.checkExpressionType(typ); e != nil {
		return nil, e
	}
	d, err := newFilterData(topic, group, expr, typ)
	if err != nil {
		return nil, refuse(remoting.RespSubscriptionParseFailed, "parse the consumer's subscription failed: %v", err)
	}
	if b.cfg().FilterSupportRetry && strings.HasPrefix(topic, message.RetryTopicPrefix) {
		return retryFilter{b.filters, group}, nil
	}
	return exprFilter{d}, nil
}

// checkExpressionType refuses expressions while they are switched off.
func (b *Broker) checkExpressionType(typ string) *refusedError {
	if isTagType(typ) || b.cfg().EnablePropertyFilter {
		return nil
	}
	return refuse(remoting.RespSystemError, "The broker does not support consumer to filter message by %s", typ)
}

// checkClientFilter says whether a subscription could be served.
func (b *Broker) checkClientFilter(typ, expr string) *refusedError {
	if isTagType(typ) {
		return nil
	}
	if e := b.checkExpressionType(typ); e != nil {
		return e
	}
	if _, err := newFilterData("", "", expr, typ); err != nil {
		return refuse(remoting.RespSubscriptionParseFailed, "%v", err)
	}
	return nil
}

// groupFilter is the filter of an online group's subscription that is not of type TAG, for a pull that knows a version of
// it.
func (b *Broker) groupFilter(topic, group []byte, version int64, typ string) (msgFilter, *refusedError) {
	d := b.filters.Get(topic, group)
	switch {
	case d == nil || d.compiled == nil:
		return nil, refuse(remoting.RespFilterDataNotExist, "The broker's consumer filter data is not exist!Your expression may be wrong!")
	case d.version < version:
		return nil, refuse(remoting.RespFilterDataNotLatest, "the consumer's consumer filter data not latest")
	}
	if e := b.checkExpressionType(typ); e != nil {
		return nil, e
	}
	if b.cfg().FilterSupportRetry && strings.HasPrefix(string(topic), message.RetryTopicPrefix) {
		return retryFilter{b.filters, string(group)}, nil
	}
	return exprFilter{d}, nil
}
