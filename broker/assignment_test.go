package broker

import (
	"fmt"
	"strconv"
	"testing"

	"mqx/internal/fastjson"
	"mqx/internal/vfs"
	"mqx/remoting"
)

// The table of request modes is bounded as a whole, by topics and groups together; what is known may still change, and a deleted
// topic makes room.
func TestRequestModesAreBounded(t *testing.T) {
	m := newRequestModes(vfs.NewMem(), "/messageRequestMode.json")
	put := func(topic, group string) error {
		return m.put(remoting.MessageRequestMode{Topic: topic, ConsumerGroup: group, Mode: modePop})
	}
	for i := range maxRequestModes {
		if err := put(strconv.Itoa(i%500), strconv.Itoa(i/500)); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range []string{"0", "new"} {
		if err := put(topic, "new"); err == nil {
			t.Errorf("topic %s: there is no bound", topic)
		}
	}
	if err := put("7", "7"); err != nil {
		t.Errorf("a known entry cannot be changed: %v", err)
	}
	m.RemoveTopic("3")
	if err := put("new", "new"); err != nil {
		t.Errorf("no room after a deletion: %v", err)
	}
	m.saver.Wait()
}

// A table is counted when it is read, so that the bound holds after a start.
func TestRequestModesAreCountedAtTheStart(t *testing.T) {
	fsys := vfs.NewMem()
	text, err := fastjson.MarshalPretty(remoting.MessageRequestModes{Map: map[string]map[string]remoting.MessageRequestMode{
		"T": {"a": {Topic: "T", ConsumerGroup: "a"}, "b": {Topic: "T", ConsumerGroup: "b"}}, "U": {"a": {Topic: "U", ConsumerGroup: "a"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFileDurable(fsys, "/m.json", text); err != nil {
		t.Fatal(err)
	}
	m := newRequestModes(fsys, "/m.json")
	if err := m.Load(); err != nil || m.mu.size != 3 {
		t.Error(fmt.Sprint(err), m.mu.size)
	}
}
