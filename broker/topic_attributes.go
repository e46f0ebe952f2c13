package broker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mqx/remoting"
)

// attribute is one key that topics (or groups) may carry.
type attribute struct {
	changeable bool
	// values are the allowed ones, empty for a number.
	values []string
	// served are those of values that this broker honours; others are refused
	// when they are set. For numbers: only the default is honoured when
	// onlyDefault is set.
	served      []string
	onlyDefault string
	min, max    int64 // of a number
	// form checks what is neither a number nor one of some values.
	form func(value string) error
}

// topicAttributes are Apache's topic attributes and what is honoured of them.
var topicAttributes = map[string]attribute{
	"cleanup.policy":        {values: []string{"DELETE", "COMPACTION"}, served: []string{"DELETE"}},
	"message.type":          {changeable: true, values: []string{"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED"}, served: []string{"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "MIXED"}},
	"queue.type":            {values: []string{"SimpleCQ", "BatchCQ", "RocksDBCQ"}, served: []string{"SimpleCQ", "BatchCQ"}},
	"reserve.time":          {changeable: true, onlyDefault: "-1", min: -1, max: 1<<63 - 1},
	"lite.topic.expiration": {changeable: true, onlyDefault: "-1", min: -1, max: 1<<63 - 1},
	remoting.AttrForward: {changeable: true, form: func(value string) error {
		_, err := remoting.ParseForward(value)
		return err
	}},
}

// groupAttributes are the same of subscription groups. Those of lite topics are
// not honoured.
var groupAttributes = map[string]attribute{
	"priority.factor":                   {changeable: true, min: 0, max: 100},
	"lite.bind.topic":                   {changeable: true, values: []string{}, served: []string{}},
	"lite.sub.model":                    {changeable: true, values: []string{"Shared", "Exclusive"}, served: []string{"Shared"}},
	"lite.sub.client.quota":             {changeable: true, onlyDefault: "2000", min: -1, max: 1<<63 - 1},
	"lite.sub.client.max.event.cnt":     {changeable: true, onlyDefault: "400", min: 1, max: 1<<63 - 1},
	"lite.sub.reset.offset.exclusive":   {changeable: true, values: []string{"true", "false"}, served: []string{"false"}},
	"lite.sub.reset.offset.unsubscribe": {changeable: true, values: []string{"true", "false"}, served: []string{"false"}},
	"lite.sub.wildcard":                 {changeable: true, values: []string{"true", "false"}, served: []string{"false"}},
}

// attributeError is a refused attribute. NotServed tells what is right in
// Apache and not honoured here from what is wrong everywhere.
type attributeError struct {
	Text      string
	NotServed bool
}

func (e *attributeError) Error() string { return e.Text }

func badAttribute(format string, args ...any) error {
	return &attributeError{Text: fmt.Sprintf(format, args...)}
}

// parseAttributes reads "+key=value,-key" into a map whose keys keep their sign.
func parseAttributes(text string) (map[string]string, error) {
	out := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, hasValue := strings.Cut(part, "=")
		switch {
		case strings.HasPrefix(key, "+") && (!hasValue || len(key) < 2):
			return nil, badAttribute("add/alter attribute format is wrong: %s", key)
		case strings.HasPrefix(key, "-") && (hasValue || len(key) < 2):
			return nil, badAttribute("delete attribute format is wrong: %s", key)
		case !strings.HasPrefix(key, "+") && !strings.HasPrefix(key, "-"):
			return nil, badAttribute("attribute must start with + or -: %s", key)
		}
		if _, twice := out[key]; twice {
			return nil, badAttribute("key duplication: %s", key)
		}
		out[key] = value
	}
	return out, nil
}

// alterAttributes applies changes (keys with their sign) to current. create says
// that the owner does not exist yet: then only additions make sense.
func alterAttributes(known map[string]attribute, create bool, current, changes map[string]string, mixed bool) (map[string]string, error) {
	out := map[string]string{}
	maps.Copy(out, current)
	seen := map[string]bool{}
	for _, signed := range slices.Sorted(maps.Keys(changes)) {
		if len(signed) < 2 {
			return nil, badAttribute("unsupported key: %q", signed)
		}
		sign, key := signed[0], signed[1:]
		if seen[key] {
			return nil, badAttribute("key duplication: %s", key)
		}
		seen[key] = true
		a, ok := known[key]
		switch {
		case !ok:
			return nil, badAttribute("unsupported key: %s", key)
		case sign == '-' && create:
			return nil, badAttribute("only add attribute is supported while creating topic. key: %s", key)
		case sign == '-':
			if _, has := out[key]; !has {
				return nil, badAttribute("attempt to delete a nonexistent key: %s", key)
			}
			delete(out, key)
			continue
		}
		value := changes[signed]
		if old, has := out[key]; has && !a.changeable && old != value {
			return nil, badAttribute("attempt to update an unchangeable attribute. key: %s", key)
		}
		if err := a.check(key, value, mixed); err != nil {
			return nil, err
		}
		out[key] = value
	}
	return out, nil
}

func (a attribute) check(key, value string, mixed bool) error {
	if a.form != nil {
		if err := a.form(value); err != nil {
			return badAttribute("value of %s: %v", key, err)
		}
		return nil
	}
	if a.values == nil {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < a.min || n > a.max {
			return badAttribute("value is not in range(%d, %d): %s", a.min, a.max, value)
		}
		if a.onlyDefault != "" && value != a.onlyDefault {
			return &attributeError{NotServed: true, Text: fmt.Sprintf("attribute %s=%s is not served", key, value)}
		}
		return nil
	}
	if len(a.values) > 0 && !slices.Contains(a.values, value) {
		return badAttribute("value is not in set: %s", value)
	}
	if key == "message.type" && value == "MIXED" && !mixed {
		return &attributeError{NotServed: true, Text: "MIXED message type is not supported."}
	}
	if !slices.Contains(a.served, value) {
		return &attributeError{NotServed: true, Text: fmt.Sprintf("attribute %s=%s is not served", key, value)}
	}
	return nil
}
