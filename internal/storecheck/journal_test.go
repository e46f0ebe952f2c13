package storecheck_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"mqx/internal/storecheck"
)

// What the journal must find wrong, from a log of three messages that is right.
func TestJournalFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *storecheck.Log)
		want   string
	}{
		"nothing":        {func(*storecheck.Log) {}, ""},
		"not answered":   {func(l *storecheck.Log) { l.Records = l.Records[:3] }, ""},
		"lost":           {func(l *storecheck.Log) { l.Records = l.Records[1:] }, "message 0 is lost"},
		"expired":        {func(l *storecheck.Log) { l.Records, l.Min = l.Records[1:], 100 }, ""},
		"twice":          {func(l *storecheck.Log) { l.Records = append(l.Records, l.Records[0]) }, "is there twice"},
		"elsewhere":      {func(l *storecheck.Log) { l.Records[1].QueueOffset = 7 }, "answered was"},
		"other position": {func(l *storecheck.Log) { l.Records[1].Phys = 7 }, "answered was"},
		"other queue":    {func(l *storecheck.Log) { l.Records[1].QueueID = 7 }, "not as it was sent"},
		"other body":     {func(l *storecheck.Log) { l.Records[1].Body = storecheck.Body(1, 50) }, "not as it was sent"},
		"never sent":     {func(l *storecheck.Log) { l.Records[3].Body = storecheck.Body(99, 20) }, "never sent"},
		"foreign topic":  {func(l *storecheck.Log) { l.Records[3].Topic = "OTHER" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j, l := threeAnswered()
			c.change(l)
			expect(t, j.Check(l), c.want)
			var b bytes.Buffer
			if err := j.Save(&b); err != nil {
				t.Fatal(err)
			}
			again, err := storecheck.LoadJournal(&b)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, again.Check(l), c.want)
		})
	}
}

func expect(t *testing.T, errs []error, want string) {
	t.Helper()
	text := ""
	if err := errors.Join(errs...); err != nil {
		text = err.Error()
	}
	if want == "" && text != "" || !strings.Contains(text, want) {
		t.Errorf("found %q, want %q", text, want)
	}
}

// threeAnswered is a journal of three answered messages and one that was not, and the log that holds all four.
func threeAnswered() (*storecheck.Journal, *storecheck.Log) {
	j, l := &storecheck.Journal{}, &storecheck.Log{End: 400}
	for i := range int64(4) {
		id, body := j.Begin("T", 1, 20)
		l.Records = append(l.Records, storecheck.Record{Phys: 100 * i, QueueOffset: i, Size: 100, Topic: "T", QueueID: 1, Body: body})
		if i < 3 {
			j.Ack(id, i, 100*i)
		}
	}
	return j, l
}

// A message that was answered before another one was sent lies in front of it.
func TestJournalKnowsTheOrder(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		j, l := &storecheck.Journal{}, &storecheck.Log{}
		first, firstBody := j.Begin("T", 0, 20)
		at := func(late bool) int64 {
			if late {
				return 1
			}
			return 0
		}
		j.Ack(first, at(swapped), -1)
		second, secondBody := j.Begin("T", 0, 20)
		j.Ack(second, at(!swapped), -1)
		l.Records = []storecheck.Record{
			{QueueOffset: at(swapped), Topic: "T", Body: firstBody, Size: 100},
			{QueueOffset: at(!swapped), Topic: "T", Body: secondBody, Size: 100, Phys: 100},
		}
		want := ""
		if swapped {
			want = "lies behind it"
		}
		expect(t, j.Check(l), want)
	}
}
