package cmd

import (
	"maps"

	"mqx/message"
)

// The forms of what mqx produce reads.
const (
	inputLines  = "lines"
	inputNDJSON = "ndjson"
)

// message makes the message of one line: the line is the body, or with --input
// ndjson what mqx consume -o ndjson and mqx store export write. What the flags say
// wins over the line.
func (s *sender) message(line inputLine) (*message.Message, error) {
	m := *s.proto
	m.Properties = make(map[string]string, len(s.proto.Properties)+2)
	m.Body = line.text
	if s.input == inputNDJSON {
		l, err := message.ParseLine(line.text)
		if err != nil {
			return nil, usagef("cannot send line %d: %w", line.number, err).try("mqx consume TOPIC -o ndjson shows the form")
		}
		m.Body, m.Flag = l.Body, l.Flag
		for name, value := range l.Properties {
			if !message.IsOwnProperty(name) && value != "" {
				m.Properties[name] = value
			}
		}
	}
	maps.Copy(m.Properties, s.proto.Properties)
	if s.input == inputNDJSON {
		if err := m.Validate(); err != nil {
			return nil, usagef("cannot send line %d: %w", line.number, err)
		}
	}
	return &m, nil
}
