package filter

import (
	"slices"
	"strings"

	"mqx/message"
)

// AllTags is the expression that every message fulfils.
const AllTags = "*"

// Tags is a compiled tag expression: `a || b`, or * for all. Messages pass by the hash of their tag; equal hashes pass too,
// the client compares the text. It is immutable and safe to share.
type Tags struct {
	all   bool
	codes []int32 // sorted
}

// fewCodes is the length up to which codes are searched in turn.
const fewCodes = 8

// CompileTags compiles a tag expression. Empty text stands for all tags; one of nothing but separators names no tag, and
// no message fulfils it.
func CompileTags(expr string) *Tags {
	if IsAllTags(expr) {
		return &Tags{all: true}
	}
	var codes []int32
	for _, tag := range SplitTags(expr) {
		codes = append(codes, message.JavaHash([]byte(tag)))
	}
	return TagsOfCodes(codes)
}

// TagsOfCodes is the expression of tags that are given by their hashes, as clients send them.
func TagsOfCodes(codes []int32) *Tags {
	codes = slices.Clone(codes)
	slices.Sort(codes)
	return &Tags{codes: slices.Compact(codes)}
}

// IsAllTags reports whether an expression stands for all tags.
func IsAllTags(expr string) bool {
	expr = strings.TrimSpace(expr)
	return expr == "" || expr == AllTags
}

// SplitTags returns the tags that an expression names.
func SplitTags(expr string) []string {
	var out []string
	for part := range strings.SplitSeq(expr, "||") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// All reports whether every message passes.
func (t *Tags) All() bool { return t.all }

// Match reports whether a message passes, by the tags code of its queue unit, of which 32 bits count.
func (t *Tags) Match(tagsCode int64) bool {
	if t.all {
		return true
	}
	if len(t.codes) <= fewCodes {
		return slices.Contains(t.codes, int32(tagsCode))
	}
	_, ok := slices.BinarySearch(t.codes, int32(tagsCode))
	return ok
}
