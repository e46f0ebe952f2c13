package inspect

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"mqx/filter"
	"mqx/message"
)

// Match says which records are wanted. Everything that is set has to hold; the zero value wants all.
type Match struct {
	Topic    string
	Topics   []string // one of these; empty wants all
	Queue    int32
	HasQueue bool
	Tag      string // a || b; "" and * are all
	Key      string // a word of KEYS, or the unique id
	ID       string // the unique id
	Body     string // text that occurs in the body, decompressed
	Where    *filter.Expression
	// Start and End are store times in ms, End exclusive; 0 is none.
	Start, End int64
	// FromOffset and ToOffset are queue offsets, ToOffset exclusive; they count where HasOffsets is set.
	FromOffset, ToOffset int64
	HasOffsets           bool
	// Visible passes only what consumers of its topic can see: no prepared and no rolled back record.
	Visible bool
}

// Func is the function that tells whether a record is wanted. It is safe to share and keeps nothing.
func (m Match) Func() func(message.View) bool { return m.compile().match }

func (m Match) compile() *matcher {
	if len(m.Topics) == 1 && m.Topic == "" {
		m.Topic = m.Topics[0]
	}
	c := &matcher{Match: m, topic: []byte(m.Topic), key: []byte(m.Key), id: []byte(m.ID), body: []byte(m.Body)}
	if t := strings.TrimSpace(m.Tag); t != "" && t != "*" {
		for tag := range strings.SplitSeq(t, "||") {
			if tag = strings.TrimSpace(tag); tag != "" {
				c.tags = append(c.tags, []byte(tag))
			}
		}
	}
	c.inside = len(c.tags) > 0 || len(c.key) > 0 || len(c.id) > 0 || m.Where != nil
	return c
}

type matcher struct {
	Match
	topic, key, id, body []byte
	tags                 [][]byte
	inside               bool // properties decide
}

func (c *matcher) match(v message.View) bool {
	if len(c.topic) > 0 && !bytes.Equal(v.Topic(), c.topic) {
		return false
	}
	if len(c.Topics) > 1 && !slices.Contains(c.Topics, string(v.Topic())) {
		return false
	}
	if c.HasQueue && v.QueueID() != c.Queue {
		return false
	}
	if c.Start > 0 && v.StoreTimestamp() < c.Start || c.End > 0 && v.StoreTimestamp() >= c.End {
		return false
	}
	if c.HasOffsets && !c.inOffsets(v) {
		return false
	}
	if c.Visible {
		if t := v.Transaction(); t == message.TransactionPrepared || t == message.TransactionRollback {
			return false
		}
	}
	if c.inside && !c.properties(v.Properties()) && !c.inBatch(v) {
		return false
	}
	return len(c.body) == 0 || c.inBody(v)
}

// inOffsets: of an inner batch one message is enough.
func (c *matcher) inOffsets(v message.View) bool {
	from := v.QueueOffset()
	to := from + 1
	if v.SysFlag()&message.FlagInnerBatch != 0 {
		if n, ok := v.Property(message.PropInnerNum); ok {
			if count, err := strconv.ParseInt(string(n), 10, 32); err == nil && count > 0 {
				to = from + count
			}
		}
	}
	return from < c.ToOffset && to > c.FromOffset
}

// Message tells whether one message of a record that was chosen is wanted: of an inner batch perhaps not all are. It
// looks at offsets and properties; the rest is the same for the whole record.
func (m Match) Message(r *message.Received) bool {
	if m.HasOffsets && (r.QueueOffset < m.FromOffset || r.QueueOffset >= m.ToOffset) {
		return false
	}
	c := m.compile()
	return !c.inside || c.properties(message.FormatProperties(r.Properties))
}

// properties looks at one message's properties.
func (c *matcher) properties(props []byte) bool {
	if len(c.tags) > 0 {
		tag, _ := message.Property(props, message.PropTags)
		found := false
		for _, t := range c.tags {
			found = found || bytes.Equal(t, tag)
		}
		if !found {
			return false
		}
	}
	if len(c.id) > 0 {
		if id, _ := message.Property(props, message.PropUniqKey); !bytes.Equal(id, c.id) {
			return false
		}
	}
	if len(c.key) > 0 && !hasKey(props, c.key) {
		return false
	}
	return c.Where == nil || c.Where.MatchProperties(props)
}

func hasKey(props, key []byte) bool {
	if id, _ := message.Property(props, message.PropUniqKey); bytes.Equal(id, key) {
		return true
	}
	keys, _ := message.Property(props, message.PropKeys)
	for word, rest := message.NextKey(keys); word != nil; word, rest = message.NextKey(rest) {
		if bytes.Equal(word, key) {
			return true
		}
	}
	return false
}

// inBatch looks at the messages inside an inner batch.
func (c *matcher) inBatch(v message.View) bool {
	if v.SysFlag()&message.FlagInnerBatch == 0 {
		return false
	}
	body, err := message.Decompress(v.Body(), v.SysFlag(), 0)
	if err != nil {
		return false
	}
	for item, err := range message.SplitBatch(body) {
		if err != nil {
			return false
		}
		if c.properties(item.Properties) {
			return true
		}
	}
	return false
}

func (c *matcher) inBody(v message.View) bool {
	body, err := message.Decompress(v.Body(), v.SysFlag(), 0)
	if err != nil {
		body = v.Body()
	}
	return bytes.Contains(body, c.body)
}
