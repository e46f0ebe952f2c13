package message_test

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mqx/message"
)

func TestMessageProperties(t *testing.T) {
	var m message.Message
	if m.DelayLevel() != 0 || !m.WaitStore() || m.Tags() != "" || len(m.Keys()) != 0 || m.Property("x") != "" {
		t.Error("an empty message has properties")
	}
	m.SetKeys("a", "b")
	m.SetTags("t")
	m.SetUniqKey("id")
	m.SetDelayLevel(3)
	m.SetWaitStore(false)
	m.SetProperty("own", "value")
	want := map[string]string{"KEYS": "a b", "TAGS": "t", "UNIQ_KEY": "id", "DELAY": "3", "WAIT": "false", "own": "value"}
	if d := cmp.Diff(want, m.Properties); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if m.DelayLevel() != 3 || m.WaitStore() || m.Tags() != "t" || m.UniqKey() != "id" || strings.Join(m.Keys(), "+") != "a+b" {
		t.Errorf("%+v", m)
	}
	m.SetProperty(message.PropKeys, " a\tb  c ")
	if d := cmp.Diff([]string{"a\tb", "c"}, m.Keys()); d != "" {
		t.Errorf("keys (-want +got):\n%s", d)
	}
	m.SetKeys()
	m.SetDelayLevel(0)
	m.SetProperty("own", "")
	m.SetWaitStore(true)
	if d := cmp.Diff(map[string]string{"TAGS": "t", "UNIQ_KEY": "id", "WAIT": "true"}, m.Properties); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	m.Properties[message.PropDelay] = "soon"
	if m.DelayLevel() != 0 {
		t.Error("text is a delay level")
	}
}

func TestMessageValidate(t *testing.T) {
	var name *message.NameError
	var text *message.PropertyTextError
	var limit *message.LimitError
	for _, tt := range []struct {
		m    message.Message
		want any
	}{
		{message.Message{Topic: "T"}, nil},
		{message.Message{Topic: "T", Properties: map[string]string{"k": strings.Repeat("v", 32767-3)}}, nil},
		{message.Message{Topic: "a.b"}, &name},
		{message.Message{Topic: "T", Properties: map[string]string{"k": "\x01"}}, &text},
		{message.Message{Topic: "T", Properties: map[string]string{"k": strings.Repeat("v", 32767-2)}}, &limit},
	} {
		err := tt.m.Validate()
		if (err != nil) != (tt.want != nil) || tt.want != nil && !errors.As(err, tt.want) {
			t.Errorf("topic %s: %v", tt.m.Topic, err)
		}
	}
}

func TestDecodeMessages(t *testing.T) {
	plain := sample()
	packed := sample()
	packed.Body, packed.SysFlag = compressed(t, message.CompressionLZ4, "unpacked"), message.CompressionLZ4.SysFlag()
	inner := sample()
	inner.SysFlag, inner.QueueOffset = message.FlagNeedUnwrap|message.FlagInnerBatch, 40
	inner.Body = message.AppendBatchItem(nil, 1, []byte("first"), []byte("a\x01b\x02"))
	inner.Body = message.AppendBatchItem(inner.Body, 2, []byte("second"), nil)
	b := inner.Append(packed.Append(plain.Append(nil, false), false), false)

	type short struct {
		Body   string
		Flag   int32
		Offset int64
		Flags  int32
	}
	want := []short{
		{"body", 7, 11, message.TransactionCommit},
		{"unpacked", 7, 11, int32(message.CompressionLZ4)},
		{"first", 1, 40, 0xC0},
		{"second", 2, 41, 0xC0},
	}
	var got []short
	for m, err := range message.DecodeMessages(b, message.ReceiveOptions{VerifyBodyCRC: true}) {
		if err != nil {
			t.Fatal(err)
		}
		c := m.Clone()
		clear(m.Body)
		got = append(got, short{string(c.Body), c.Flag, c.QueueOffset, c.SysFlag})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if mustDecode(t, b).Body[0] != 'b' {
		t.Error("a message aliases the input")
	}
	kept := 0
	for m, err := range message.DecodeMessages(b, message.ReceiveOptions{KeepBatches: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if kept++; kept == 3 && !bytes.Equal(m.Body, inner.Body) {
			t.Errorf("batch is not kept: %q", m.Body)
		}
	}
	if kept != 3 {
		t.Errorf("%d messages, want 3", kept)
	}
}

// A message that cannot be unpacked does not hide those behind it; a record that cannot be read ends it all.
func TestDecodeMessagesErrors(t *testing.T) {
	bomb := sample()
	bomb.Body, bomb.SysFlag = compressed(t, message.CompressionZlib, strings.Repeat("x", 1000)), message.CompressionZlib.SysFlag()
	badBatch := sample()
	badBatch.SysFlag = message.FlagNeedUnwrap | message.FlagInnerBatch
	badCRC := sample()
	plain := sample()
	b := bomb.Append(nil, false)
	b = badBatch.Append(b, false)
	at := len(b)
	b = badCRC.Append(b, false)
	b[at+88] ^= 1
	b = plain.Append(b, false)
	end := len(b)
	b = append(b, plain.Append(nil, false)[:50]...)

	good := 0
	var texts []string
	for _, err := range message.DecodeMessages(b, message.ReceiveOptions{VerifyBodyCRC: true, BodyLimit: 999}) {
		if err == nil {
			good++
			continue
		}
		texts = append(texts, err.Error())
	}
	if good != 1 || len(texts) != 4 {
		t.Fatalf("%d messages, errors %q", good, texts)
	}
	for i, want := range []string{
		" bytes with ZLIB: body grows beyond the limit",
		": batch: item 0 at byte 0: item overhead: want at most 4, got 22",
		": record: body CRC: want ",
		"cannot decode record at byte " + strconv.Itoa(end) + " of " + strconv.Itoa(len(b)) + ": record: more bytes needed",
	} {
		if !strings.Contains(texts[i], want) {
			t.Errorf("error %d: %s, want %s", i, texts[i], want)
		}
	}
	for _, err := range message.DecodeMessages(b, message.ReceiveOptions{BodyLimit: 1}) {
		if err == nil {
			t.Error("a message above the limit is no error")
		}
		break // a caller that wants no more after an error
	}
}

func TestNextKey(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " ": nil, "a": {"a"}, "a b": {"a", "b"}, "  a  b ": {"a", "b"}, "a\tb": {"a\tb"},
	} {
		var got []string
		for word, rest := message.NextKey([]byte(text)); word != nil; word, rest = message.NextKey(rest) {
			got = append(got, string(word))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q has the keys %q, want %q", text, got, want)
		}
	}
}
