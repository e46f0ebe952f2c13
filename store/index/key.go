package index

import (
	"math"

	"mqx/message"
)

// Hash returns the hash of a key as it stands in entries: the absolute value of Java's hash of `topic#key`.
func Hash(topic, key []byte) int32 { return NewHasher(topic).Key(key) }

// Hasher hashes the keys of one topic.
type Hasher struct {
	topic  []byte
	prefix uint32 // hash of `topic#`
}

// NewHasher returns the hasher of a topic. It keeps topic.
func NewHasher(topic []byte) Hasher {
	return Hasher{topic, extend(uint32(message.JavaHash(topic)), '#')}
}

// Key returns the hash of one of the words of KEYS, or of the unique key.
func (h Hasher) Key(key []byte) int32 { return absolute(h.sum(h.prefix, "", key)) }

// Tags returns the hash of the whole TAGS text.
func (h Hasher) Tags(tags []byte) int32 {
	return absolute(h.sum(extend(extend(h.prefix, 'T'), '#'), "T#", tags))
}

func extend(h uint32, c byte) uint32 { return 31*h + uint32(c) }

// sum continues a hash over ASCII text, and starts anew over the whole text when it meets something else.
func (h Hasher) sum(sum uint32, between string, key []byte) int32 {
	sum, rest := message.ExtendJavaHash(sum, key)
	if len(rest) == 0 {
		return int32(sum)
	}
	whole := make([]byte, 0, len(h.topic)+1+len(between)+len(key))
	whole = append(append(whole, h.topic...), '#')
	whole = append(append(whole, between...), key...)
	return message.JavaHash(whole)
}

// absolute is Java's Math.abs with its one gap closed as Apache closes it.
func absolute(h int32) int32 {
	if h == math.MinInt32 {
		return 0
	}
	if h < 0 {
		return -h
	}
	return h
}
