package store

import (
	"fmt"
	"testing"

	"mqx/message"
	"mqx/store/consumequeue"

	"mqx/internal/vfs"
)

// keyBits is a bit map of one byte: the first of the message's key.
type keyBits struct{}

func (keyBits) AppendBitMap(dst, _, props []byte) []byte {
	key, _ := message.Property(props, message.PropKeys)
	return append(dst, key[0])
}

// bitFilter lets messages pass by their bit map.
type bitFilter struct {
	want byte
	tags bool // by the tags code as well
}

func (f bitFilter) MatchCQ(code int64) bool       { return !f.tags || code == message.TagsCode([]byte("t")) }
func (f bitFilter) MatchRecord(message.View) bool { return true }
func (f bitFilter) MatchExt(u ExtUnit) bool       { return len(u.BitMap) == 1 && u.BitMap[0] == f.want }

func extConfig(m vfs.FS) Config {
	cfg := memConfig(m)
	cfg.EnableConsumeQueueExt, cfg.ConsumeQueueExtFileBytes, cfg.BitMaps = true, 256, keyBits{}
	return cfg
}

func extRecord(i int) message.Record {
	return newRecord("T", 0, fmt.Sprint("m", i), message.PropKeys+"\x01"+string(rune('a'+i%3))+"\x02"+message.PropTags+"\x01t\x02")
}

// A filter sees the bit map and the real tags code, before and after a stop, and after a process that was killed.
func TestFilterByBitMap(t *testing.T) {
	m := vfs.NewMem()
	s := mustOpen(t, extConfig(m))
	for i := range 30 {
		mustPut(t, s, extRecord(i))
	}
	check := func(s *Store, n int) {
		t.Helper()
		for _, f := range []bitFilter{{want: 'a'}, {want: 'b', tags: true}} {
			if got := readAll(t, s, "T", 0, f); len(got) != n/3 {
				t.Errorf("%c: %d messages, want %d", f.want, len(got), n/3)
			}
		}
		units, err := s.Units("T", 0, 0, 100)
		if err != nil || len(units) != n {
			t.Fatal(len(units), err)
		}
		for i, u := range units {
			if u.Ext == nil || u.ExtLost() || u.TagsCode != message.TagsCode([]byte("t")) || string(u.Ext.BitMap) != string(rune('a'+i%3)) {
				t.Fatalf("%d: %+v", i, u)
			}
		}
	}
	catchUp(t, s)
	check(s, 30)
	mustClose(t, s)
	s = mustOpen(t, extConfig(m))
	check(s, 30)
	for i := range 30 {
		mustPut(t, s, extRecord(i))
	}
	catchUp(t, s)
	check(s, 60)
	killed := m.Kill()
	mustClose(t, s)
	s = mustOpen(t, extConfig(killed))
	check(s, 60)
}

// Units of a lost extension pass every filter: the record decides.
func TestLostExtensionPasses(t *testing.T) {
	m := vfs.NewMem()
	s := mustOpen(t, extConfig(m))
	for i := range 9 {
		mustPut(t, s, extRecord(i))
	}
	catchUp(t, s)
	mustClose(t, s)
	if err := m.RemoveAll("/data/store/consumequeue_ext"); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, extConfig(m))
	if got := readAll(t, s, "T", 0, bitFilter{want: 'a'}); len(got) != 9 {
		t.Errorf("%d messages", len(got))
	}
	units, err := s.Units("T", 0, 0, 1)
	if err != nil || !units[0].ExtLost() || !consumequeue.IsExtAddr(units[0].TagsCode) {
		t.Errorf("%+v %v", units, err)
	}
}
