package message

import "unicode/utf8"

// replacement is the character that stands for bytes that are not UTF-8.
const replacement = utf8.RuneError

// JavaHash returns what Java's String.hashCode gives for the text: h = 31*h + unit over its UTF-16 units, in 32 bits.
// s is UTF-8; malformed parts count as U+FFFD, in the portions in which Java's own decoder replaces them.
func JavaHash(s []byte) int32 {
	h, rest := ExtendJavaHash(0, s)
	if len(rest) > 0 {
		h = javaHashSlow(h, rest)
	}
	return int32(h)
}

// ExtendJavaHash goes on with a Java hash, 0 for that of no text, over the ASCII characters at the start of s, and
// returns what follows them: nothing, or text from its first character of another kind on.
func ExtendJavaHash(h uint32, s []byte) (sum uint32, rest []byte) {
	const p2, p3, p4 = 31 * 31, 31 * 31 * 31, 31 * 31 * 31 * 31
	for len(s) >= 4 { // one multiplication waits for the one before it: four characters at a time wait once
		c := s[:4:4]
		if (c[0]|c[1]|c[2]|c[3])&utf8.RuneSelf != 0 {
			break
		}
		h = p4*h + (p3*uint32(c[0]) + p2*uint32(c[1])) + (31*uint32(c[2]) + uint32(c[3]))
		s = s[4:]
	}
	for len(s) > 0 && s[0] < utf8.RuneSelf {
		h = 31*h + uint32(s[0])
		s = s[1:]
	}
	return h, s
}

func javaHashSlow(h uint32, s []byte) uint32 {
	for len(s) > 0 {
		r, n := decodeJavaRune(s)
		s = s[n:]
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + uint32(0xD800+r>>10)
			r = 0xDC00 + r&0x3FF
		}
		h = 31*h + uint32(r)
	}
	return h
}

// UTF16Len returns the number of UTF-16 units of UTF-8 text, which is what Java calls the length of a string.
func UTF16Len(s []byte) int {
	count := 0
	for len(s) > 0 {
		if s[0] < utf8.RuneSelf {
			count, s = count+1, s[1:]
			continue
		}
		r, n := decodeJavaRune(s)
		s = s[n:]
		count++
		if r >= 0x10000 {
			count++
		}
	}
	return count
}

// decodeJavaRune decodes the first character as Java's UTF-8 decoder does. It agrees with package utf8 on well-formed
// text; of malformed text it takes the longest part that could have begun a character, and of an encoded surrogate all
// three bytes, as one replacement.
func decodeJavaRune(s []byte) (r rune, n int) {
	r, n = utf8.DecodeRune(s)
	if r != replacement || n != 1 {
		return r, n
	}
	switch b := s[0]; {
	case b >= 0xE0 && b <= 0xEF:
		return replacement, malformed3(s)
	case b >= 0xF0 && b <= 0xF4:
		return replacement, malformed4(s)
	}
	return replacement, 1
}

func malformed3(s []byte) int {
	if len(s) < 2 || !continues(s[1]) || s[0] == 0xE0 && s[1] < 0xA0 {
		return 1
	}
	if len(s) > 2 && continues(s[2]) {
		return 3 // a surrogate
	}
	return 2
}

func malformed4(s []byte) int {
	if len(s) < 2 || !continues(s[1]) || s[0] == 0xF0 && s[1] < 0x90 || s[0] == 0xF4 && s[1] > 0x8F {
		return 1
	}
	if len(s) < 3 || !continues(s[2]) {
		return 2
	}
	return 3
}

func continues(b byte) bool { return b&0xC0 == 0x80 }

// TagsCode returns the code by which consume queues filter: the sign-extended JavaHash of the TAGS property, 0 for no
// tags.
func TagsCode(tags []byte) int64 { return int64(JavaHash(tags)) }
