package cmd

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mqx/client"
	"mqx/internal/words"
)

// parseTime reads a TIME: now, -15m, +10s, 2026-01-02, RFC 3339, or unix
// seconds or milliseconds, told apart by their length.
func parseTime(text string, now time.Time) (time.Time, error) {
	switch {
	case text == "now":
		return now, nil
	case strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+"):
		d, err := parseDuration(text[1:])
		if err != nil {
			return time.Time{}, usagef("cannot read time %q: %w", text, err).try("mqx help positions")
		}
		if text[0] == '-' {
			d = -d
		}
		return now.Add(d), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		switch {
		case len(text) >= 12 && len(text) <= 14:
			return time.UnixMilli(n), nil
		case len(text) >= 9 && len(text) <= 11:
			return time.Unix(n, 0), nil
		}
		return time.Time{}, usagef("cannot read time %q: %s neither unix seconds (10) nor milliseconds (13)", text, words.Count(len(text), "digit is", "digits are")).try("mqx help positions")
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("cannot read time %q: it is none of the forms of a time", text).try("mqx help positions")
}

// longestDuration is the longest that is told in days or weeks.
const longestDuration = 36500 * 24 * time.Hour

// parseDuration is time.ParseDuration with days (d) and weeks (w).
func parseDuration(text string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			count, err := strconv.ParseFloat(n, 64)
			d := count * float64(unit)
			if err != nil || math.IsNaN(d) || d < 0 || d > float64(longestDuration) {
				return 0, fmt.Errorf("%q is no duration", text)
			}
			return time.Duration(d), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no duration", text)
	}
	return d, nil
}

// parsePosition reads a POSITION: start, end, an offset or @TIME.
func parsePosition(text string, now time.Time) (client.Position, error) {
	switch text {
	case "start":
		return client.Position{Kind: client.AtStart}, nil
	case "end":
		return client.Position{Kind: client.AtEnd}, nil
	}
	if at, ok := strings.CutPrefix(text, "@"); ok {
		t, err := parseTime(at, now)
		return client.Position{Kind: client.AtTime, Time: t}, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return client.Position{}, usagef("cannot read position %q: it is start, end, an offset, or @TIME", text).try("mqx help positions")
	}
	return client.Position{Kind: client.AtOffset, Offset: n}, nil
}

// showPosition is how a position is read back to the user.
func showPosition(p client.Position) string {
	switch p.Kind {
	case client.AtStart:
		return "start"
	case client.AtEnd:
		return "end"
	case client.AtTime:
		return "@" + p.Time.Format(time.RFC3339)
	default:
		return strconv.FormatInt(p.Offset, 10)
	}
}

// parseSize reads a SIZE: 512, 4KiB, 1.5GiB, 10MB.
func parseSize(text string) (int64, error) {
	number, unit := text, float64(1)
	for _, u := range []struct {
		suffix string
		factor float64
	}{
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
		{"KB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"B", 1},
	} {
		if n, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = strings.TrimSpace(n), u.factor
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*unit > 1<<62 {
		return 0, usagef("cannot read size %q: it is no number with a unit", text).try("4KiB")
	}
	return int64(n * unit), nil
}

// sizeFlag is a flag whose value is a SIZE.
type sizeFlag int64

// String is the size in bytes.
func (s *sizeFlag) String() string { return strconv.FormatInt(int64(*s), 10) }

// Type names the value in help.
func (s *sizeFlag) Type() string { return "size" }

// Set reads a SIZE.
func (s *sizeFlag) Set(text string) error {
	n, err := parseSize(text)
	*s = sizeFlag(n)
	return err
}
