package broker

import (
	"fmt"
	"slices"
	"strings"

	"mqx/message"
	"mqx/remoting"
)

// tagFilter lets messages pass by the hash of their tag. Equal hashes pass
// too: the client compares the text.
type tagFilter struct {
	all   bool
	codes []int64 // sorted
}

// newTagFilter is the filter of a subscription of type TAG; of another type it
// passes everything (such pulls are refused before).
func newTagFilter(sub *remoting.SubscriptionData) *tagFilter {
	if exprType(sub.ExpressionType) != remoting.ExpressionTag || sub.SubString == "" || strings.TrimSpace(sub.SubString) == "*" {
		return &tagFilter{all: true}
	}
	f := &tagFilter{}
	for _, c := range sub.CodeSet {
		f.codes = append(f.codes, int64(c))
	}
	if len(f.codes) == 0 {
		for _, tag := range splitTags(sub.SubString) {
			f.codes = append(f.codes, message.TagsCode([]byte(tag)))
		}
	}
	slices.Sort(f.codes)
	f.codes = slices.Compact(f.codes)
	return f
}

// MatchCQ looks at the tags code of a queue unit.
func (f *tagFilter) MatchCQ(tagsCode int64) bool {
	if f.all {
		return true
	}
	if len(f.codes) <= 8 {
		return slices.Contains(f.codes, tagsCode)
	}
	_, ok := slices.BinarySearch(f.codes, tagsCode)
	return ok
}

// MatchRecord passes: tags are compared by hash only.
func (f *tagFilter) MatchRecord(message.View) bool { return true }

func splitTags(expr string) []string {
	var out []string
	for part := range strings.SplitSeq(expr, "||") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// parseSubscription builds the subscription that a pull carries itself.
func parseSubscription(topic, expr, typ string) (*subscription, error) {
	sub := remoting.SubscriptionData{Topic: topic, SubString: expr, ExpressionType: exprType(typ)}
	switch sub.ExpressionType {
	case remoting.ExpressionTag:
		if strings.TrimSpace(expr) == "" || strings.TrimSpace(expr) == "*" {
			sub.SubString = "*"
			break
		}
		tags := splitTags(expr)
		if len(tags) == 0 {
			return nil, fmt.Errorf("the tag expression %q names no tag", expr)
		}
		for _, tag := range tags {
			sub.TagsSet = append(sub.TagsSet, tag)
			sub.CodeSet = append(sub.CodeSet, message.JavaHash([]byte(tag)))
		}
	default:
		if expr == "" {
			return nil, fmt.Errorf("the %s expression is empty", sub.ExpressionType)
		}
	}
	return &subscription{SubscriptionData: sub, filter: newTagFilter(&sub)}, nil
}
