package cmd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mqx/client"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	for text, want := range map[string]time.Time{
		"now":                       now,
		"-15m":                      now.Add(-15 * time.Minute),
		"-2h30m":                    now.Add(-150 * time.Minute),
		"-3d":                       now.Add(-72 * time.Hour),
		"-1w":                       now.Add(-7 * 24 * time.Hour),
		"+10s":                      now.Add(10 * time.Second),
		"2026-01-02":                time.Date(2026, 1, 2, 0, 0, 0, 0, time.Local),
		"2026-01-02T15:04":          time.Date(2026, 1, 2, 15, 4, 0, 0, time.Local),
		"2026-01-02T15:04:05":       time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local),
		"2026-01-02T15:04:05.25Z":   time.Date(2026, 1, 2, 15, 4, 5, 250e6, time.UTC),
		"2026-01-02T15:04:05+08:00": time.Date(2026, 1, 2, 7, 4, 5, 0, time.UTC),
		"1767366245":                time.Unix(1767366245, 0),
		"1767366245678":             time.UnixMilli(1767366245678),
	} {
		got, err := parseTime(text, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("parseTime(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "-", "-5", "--5m", "12345", "2026-13-01", "-1x", "-1e9d", "-nand", "-36500w"} {
		if got, err := parseTime(text, now); err == nil {
			t.Errorf("parseTime(%q) = %v, want an error", text, got)
		} else if f, ok := errors.AsType[*Failure](err); !ok || f.Code != ExitUsage {
			t.Errorf("parseTime(%q): %v is no usage error", text, err)
		}
	}
}

func TestParsePosition(t *testing.T) {
	now := time.Unix(1767366245, 0)
	for text, want := range map[string]client.Position{
		"start":   {Kind: client.AtStart},
		"end":     {Kind: client.AtEnd},
		"0":       {Kind: client.AtOffset},
		"4711":    {Kind: client.AtOffset, Offset: 4711},
		"@now":    {Kind: client.AtTime, Time: now},
		"@-1h":    {Kind: client.AtTime, Time: now.Add(-time.Hour)},
		"@" + "0": {},
	} {
		got, err := parsePosition(text, now)
		if text == "@0" {
			if err == nil {
				t.Errorf("parsePosition(%q) = %v, want an error: a time of one digit", text, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("parsePosition(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "first", "@", "1.5"} {
		if got, err := parsePosition(text, now); err == nil {
			t.Errorf("parsePosition(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "512": 512, "512B": 512, "4KiB": 4096, "1.5GiB": 3 << 29, "10MB": 10_000_000, "1 MiB": 1 << 20,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "1XB", "9e99GiB", "4 k", "nan", "inf", "nanKiB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestLineReader(t *testing.T) {
	read := func(text string) (lines []string, last error) {
		r := newLineReader(strings.NewReader(text))
		for {
			line, n, err := r.next()
			if err != nil {
				return lines, err
			}
			lines = append(lines, string(line))
			if n != len(lines) {
				t.Errorf("line %d of %q is numbered %d", len(lines), text, n)
			}
		}
	}
	long := strings.Repeat("x", 200_000)
	for text, want := range map[string]string{
		"":                      "",
		"\n":                    "",
		"a":                     "a",
		"a\nb\n":                "a|b",
		"a\r\n\r\nb":            "a||b",
		long + "\n" + "y":       long + "|y",
		"tail\r":                "tail",
		"keep \t blanks  \nend": "keep \t blanks  |end",
	} {
		lines, err := read(text)
		if got := strings.Join(lines, "|"); got != want || err.Error() != "EOF" {
			t.Errorf("%.40q reads as %.60q (%v), want %.60q", text, got, err, want)
		}
	}
	_, err := read("short\n" + strings.Repeat("y", maxLineBytes+1))
	if err == nil || !strings.Contains(err.Error(), "line 2 is longer than 16777216 bytes") {
		t.Errorf("a line over the limit: %v", err)
	}
}
