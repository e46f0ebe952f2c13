package message

import (
	"bytes"
	"strconv"
	"strings"
)

// Message is what an application sends: a body for a topic, with properties. It is not safe to share while it changes.
type Message struct {
	Topic      string
	Flag       int32 // the application's own; never looked at
	Body       []byte
	Properties map[string]string // nil counts as empty
}

// Property returns a property's value, "" if there is none.
func (m *Message) Property(name string) string { return m.Properties[name] }

// SetProperty sets a property, or removes it if value is empty (an empty value does not survive the wire).
func (m *Message) SetProperty(name, value string) {
	if value == "" {
		delete(m.Properties, name)
		return
	}
	if m.Properties == nil {
		m.Properties = make(map[string]string, 4)
	}
	m.Properties[name] = value
}

// Keys returns the keys by which the message can be found.
func (m *Message) Keys() []string {
	var out []string
	for word, rest := NextKey([]byte(m.Properties[PropKeys])); word != nil; word, rest = NextKey(rest) {
		out = append(out, string(word))
	}
	return out
}

// NextKey cuts the first key off the text of a KEYS property; word is nil at the
// end. Several blanks stand for one.
func NextKey(keys []byte) (word, rest []byte) {
	for len(keys) > 0 && keys[0] == KeySeparator[0] {
		keys = keys[1:]
	}
	if len(keys) == 0 {
		return nil, nil
	}
	if end := bytes.IndexByte(keys, KeySeparator[0]); end >= 0 {
		return keys[:end], keys[end+1:]
	}
	return keys, nil
}

// SetKeys replaces the keys. A blank inside a key makes two keys of it.
func (m *Message) SetKeys(keys ...string) { m.SetProperty(PropKeys, strings.Join(keys, KeySeparator)) }

// Tags returns the tag.
func (m *Message) Tags() string { return m.Properties[PropTags] }

// SetTags sets the tag.
func (m *Message) SetTags(tags string) { m.SetProperty(PropTags, tags) }

// UniqKey returns the client's unique id.
func (m *Message) UniqKey() string { return m.Properties[PropUniqKey] }

// SetUniqKey sets the client's unique id.
func (m *Message) SetUniqKey(id string) { m.SetProperty(PropUniqKey, id) }

// DelayLevel returns the delay level, 0 for none or for text that is no number.
func (m *Message) DelayLevel() int {
	level, err := strconv.Atoi(m.Properties[PropDelay])
	if err != nil {
		return 0
	}
	return level
}

// SetDelayLevel sets the delay level; 0 removes it.
func (m *Message) SetDelayLevel(level int) {
	if level == 0 {
		m.SetProperty(PropDelay, "")
		return
	}
	m.SetProperty(PropDelay, strconv.Itoa(level))
}

// WaitStore reports whether the broker answers only when the message is as durable as it is configured to make it.
func (m *Message) WaitStore() bool { return m.Properties[PropWait] != FalseValue }

// SetWaitStore sets the WAIT property, which Apache's clients always send.
func (m *Message) SetWaitStore(wait bool) { m.SetProperty(PropWait, strconv.FormatBool(wait)) }

// Validate reports the first rule that the message breaks: a topic name that is not allowed (*NameError), a property
// that would not arrive (*PropertyTextError), or more than 32767 bytes of properties (*LimitError).
func (m *Message) Validate() error {
	if err := ValidateTopic(m.Topic); err != nil {
		return err
	}
	n := 0
	for name, value := range m.Properties {
		if err := ValidatePropertyText(name, value); err != nil {
			return err
		}
		n += len(name) + len(value) + 2
	}
	if n > MaxPropertiesLen {
		return &LimitError{Field: "properties", Len: n, Limit: MaxPropertiesLen}
	}
	return nil
}
