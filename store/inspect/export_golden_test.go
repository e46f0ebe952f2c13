package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/store/inspect"
)

// A whole export has every record of every golden store, in order, and what it takes to make the same bytes again; the
// counts add up.
func TestExportGolden(t *testing.T) {
	eachSound(t, func(t *testing.T, d *inspect.Dir, m *testkit.Manifest) {
		var out bytes.Buffer
		n, err := d.Export(context.Background(), &out, inspect.ExportOptions{Whole: true})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, n, out.String())
		if !n.Whole {
			t.Error("it is not whole")
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		i := 0
		if _, err = d.Log().Walk(context.Background(), inspect.WalkOptions{}, func(off int64, rec message.View) error {
			l, err := message.ParseLine([]byte(lines[i]))
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.AppendRecord(nil)
			if err != nil || !bytes.Equal(got, rec) {
				t.Fatalf("record at %d is not that of line %d: %v", off, i+1, err)
			}
			for i++; i < len(lines) && strings.Contains(lines[i], `"recordMessage":`); i++ {
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if i != len(lines) {
			t.Errorf("%d lines, the log has %d", len(lines), i)
		}
	})
}

func checkCounts(t *testing.T, n inspect.ExportCounts, text string) {
	t.Helper()
	skipped := int64(0)
	for _, c := range n.Skipped {
		skipped += c
	}
	if n.Read != n.Matched+n.NotMatched || n.Matched != n.Written+skipped || int64(strings.Count(text, "\n")) != n.Messages || int64(len(text)) != n.Bytes {
		t.Errorf("the counts do not add up: %+v, %d bytes", n, len(text))
	}
}

// A part has what is wanted and nothing of positions in the log; of an inner batch the messages that match.
func TestExportPart(t *testing.T) {
	d := openGolden(t, "batchcq")
	var out bytes.Buffer
	n, err := d.Export(context.Background(), &out, inspect.ExportOptions{Match: inspect.Match{
		Topics: []string{"BcqTopic", "NOPE"}, HasOffsets: true, FromOffset: 3, ToOffset: 5,
	}})
	if err != nil {
		t.Fatal(err)
	}
	checkCounts(t, n, out.String())
	if n.Whole || n.Messages == 0 || strings.Contains(out.String(), "physicalOffset") || strings.Contains(out.String(), `"record"`) {
		t.Errorf("%+v %s", n, out.String())
	}
	for line := range strings.Lines(out.String()) {
		l, err := message.ParseLine([]byte(line))
		if err != nil || *l.QueueOffset < 3 || *l.QueueOffset >= 5 {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// What cannot be read is counted, and the rest is there.
func TestExportOfDamaged(t *testing.T) {
	for _, variant := range []string{"crash_body_mid_firstfile", "clean_midfile_missing", "crash_tail_bad_crc"} {
		t.Run(variant, func(t *testing.T) {
			var out bytes.Buffer
			n, err := openGolden(t, variant).Export(context.Background(), &out, inspect.ExportOptions{Whole: true})
			if err != nil {
				t.Fatal(err)
			}
			checkCounts(t, n, out.String())
			if n.Unreadable != 1 || n.UnreadableBytes == 0 || n.Whole != (variant == "crash_tail_bad_crc") {
				t.Errorf("%+v", n)
			}
		})
	}
}

// A writer that fails ends the export with its error.
func TestExportWriterFails(t *testing.T) {
	_, err := openGolden(t, "basic").Export(context.Background(), failing{}, inspect.ExportOptions{Whole: true})
	if !errors.Is(err, errFull) {
		t.Error(err)
	}
}

var errFull = errors.New("no space")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }
