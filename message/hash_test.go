package message_test

import (
	"bufio"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"mqx/message"
)

// Hashes and lengths are those that a JVM printed, of text and of bytes that are not UTF-8.
func TestJavaHashIsJavas(t *testing.T) {
	f, err := os.Open("testdata/javahash.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, tested := bufio.NewScanner(f), 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		fields := strings.Split(lines.Text(), " ")
		s, err := hex.DecodeString(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := strconv.Itoa(int(message.JavaHash(s))); got != fields[1] {
			t.Errorf("hash of %x is %s, want %s", s, got, fields[1])
		}
		if got := strconv.Itoa(message.UTF16Len(s)); got != fields[2] {
			t.Errorf("length of %x is %s, want %s", s, got, fields[2])
		}
		tested++
	}
	if err := lines.Err(); err != nil || tested < 600 {
		t.Fatalf("%d lines, %v", tested, err)
	}
}

func TestJavaHashOfText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		units := utf16.Encode([]rune(s))
		var h int32
		for _, u := range units {
			h = 31*h + int32(u)
		}
		if got := message.JavaHash([]byte(s)); got != h {
			t.Fatalf("hash %d, want %d", got, h)
		}
		if got := message.UTF16Len([]byte(s)); got != len(units) {
			t.Fatalf("length %d, want %d", got, len(units))
		}
	})
}

func TestTagsCode(t *testing.T) {
	for _, tt := range []struct {
		tags string
		want int64
	}{
		{"", 0},
		{"TagA", 2598919},
		{"longtopic", 147371059},
		{"polygenelubricants", -2147483648}, // sign-extended
	} {
		if got := message.TagsCode([]byte(tt.tags)); got != tt.want {
			t.Errorf("code of %q is %d, want %d", tt.tags, got, tt.want)
		}
	}
	if got := message.TagsCode(nil); got != 0 {
		t.Errorf("code of no tags is %d", got)
	}
}
