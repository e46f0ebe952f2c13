package filter

import (
	"slices"
	"testing"

	"mqx/message"
)

func TestTags(t *testing.T) {
	code := func(tag string) int64 { return message.TagsCode([]byte(tag)) }
	many := CompileTags("a||b||c||d||e||f||g||h||i||j")
	tests := []struct {
		tags *Tags
		code int64
		want bool
	}{
		{CompileTags(""), 0, true},
		{CompileTags(" * "), code("a"), true},
		{CompileTags("a"), code("a"), true},
		{CompileTags("a"), code("b"), false},
		{CompileTags(" a || b||"), code("b"), true},
		{CompileTags("||"), 0, false},
		{CompileTags("a||*"), code("b"), false}, // as Apache: the star is a tag here
		{CompileTags("Aa"), code("BB"), true},   // equal hashes
		{TagsOfCodes([]int32{7, 3, 3}), 3, true},
		{TagsOfCodes([]int32{-1}), 1<<32 | 0xFFFFFFFF, true},
		{TagsOfCodes(nil), 0, false},
		{many, code("j"), true},
		{many, code("k"), false},
	}
	for i, tc := range tests {
		if got := tc.tags.Match(tc.code); got != tc.want {
			t.Errorf("%d: got %v", i, got)
		}
	}
	if got := SplitTags(" a || || b "); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
}
