package cmd

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// logEntry is one line of a log.
type logEntry struct {
	at    time.Time
	level string // debug, info, warn, error
	text  string
	// timed lines say how long something took; of a slow request also which, and the stage
	// that took most of it.
	timed   bool
	took    time.Duration
	request string
	stage   string
}

// apacheLine is RocketMQ's pattern: time, level, thread, message.
var apacheLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d+)? +(TRACE|DEBUG|INFO|WARN|ERROR) +(.*?) +- (.*)$`)
})

// textField is a key of slog's text form with its value.
var textField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^| )([A-Za-z_][A-Za-z0-9_.]*)=("(?:[^"\\]|\\.)*"|[^ ]*)`)
})

// logStages are the stages of slow requests, by the names of their attributes.
var logStages = []string{"queued", "locked", "appended", "flushed", "replicated", "answered", "served"}

// parseLogLine reads a line; ok is false for one that is none, as those of a stack.
func parseLogLine(line string) (e logEntry, ok bool) {
	switch {
	case strings.HasPrefix(line, "{"):
		return parseJSONLine(line)
	case strings.HasPrefix(line, "time="):
		fields := map[string]string{}
		for _, m := range textField().FindAllStringSubmatch(line, -1) {
			v := m[2]
			if s, err := strconv.Unquote(v); err == nil {
				v = s
			}
			if _, again := fields[m[1]]; !again {
				fields[m[1]] = v
			}
		}
		return ownEntry(fields)
	}
	m := apacheLine().FindStringSubmatch(line)
	if m == nil {
		return e, false
	}
	// The zone is that of the broker's logback file, which the line does not say.
	at, err := time.ParseInLocation(time.DateTime, m[1], time.Local)
	if err != nil {
		return e, false
	}
	e = logEntry{at: at, level: strings.ToLower(m[2]), text: m[4]}
	e.took, e.timed = tookIn(e.text)
	return e, true
}

func parseJSONLine(line string) (logEntry, bool) {
	var raw map[string]any
	if json.Unmarshal([]byte(line), &raw) != nil {
		return logEntry{}, false
	}
	fields := map[string]string{}
	for k, v := range raw {
		switch v := v.(type) {
		case string:
			fields[k] = v
		case float64:
			fields[k] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
		}
	}
	return ownEntry(fields)
}

// ownEntry is a line of mqx by its attributes.
func ownEntry(fields map[string]string) (e logEntry, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, fields["time"])
	if err != nil || fields["msg"] == "" {
		return e, false
	}
	level, _, _ := strings.Cut(strings.ToLower(fields["level"]), "+")
	e = logEntry{at: at, level: level, text: fields["msg"]}
	for _, k := range []string{"error", "err"} {
		if v := fields[k]; v != "" {
			e.text += ": " + v
			break
		}
	}
	if fields["msg"] != "slow request" {
		return e, true
	}
	e.request, e.took, e.timed = fields["request"], msOf(fields["took_ms"]), true
	longest := time.Duration(0)
	for _, s := range logStages {
		if d := msOf(fields[s+"_ms"]); d > longest {
			longest, e.stage = d, s
		}
	}
	return e, true
}

func msOf(text string) time.Duration {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > 1e12 {
		return 0
	}
	return time.Duration(v * float64(time.Millisecond))
}

// costs are how Apache's lines say how long something took, with the number in ms.
var costs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:cost|costs|elapsed|elapsed time|cost time|use time|\b(?:took|take|spent|RT))\s*(?:\(ms\)|time\(ms\)|time)?\s*[:=]?\s*(\d+)\s*(ms|mills|millis|milliseconds|s)?\b`)
})

// tookIn finds how long something took in a text.
func tookIn(text string) (time.Duration, bool) {
	m := costs().FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > 1e12 {
		return 0, false
	}
	if m[2] == "s" {
		return time.Duration(n) * time.Second, true
	}
	return time.Duration(n) * time.Millisecond, true
}

// changing is what differs from line to line: ids, addresses, paths, numbers.
var changing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9A-Fa-f]{16,}|/?\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|(?:/[\w.@%+-]+){2,}|\b0x[0-9a-fA-F]+\b|\d+(?:\.\d+)?`)
})

// maxKind is how long the text of a kind may be.
const maxKind = 200

// kind is what a line has in common with others.
func (e *logEntry) kind() string {
	if e.request != "" {
		return e.request
	}
	text := changing().ReplaceAllString(e.text, "*")
	if r := []rune(text); len(r) > maxKind {
		text = string(r[:maxKind]) + "…"
	}
	return text
}
