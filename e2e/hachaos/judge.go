package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"mqx/internal/storecheck"
	"mqx/internal/vfs"
)

const indexSlots = 1000

// judge ends the load and compares what is left with what was said.
func (r *round) judge() error {
	g := r.g
	r.l.stop()
	for _, w := range r.l.wrong {
		r.find("%s", w)
	}
	if err := g.wait("the same logs", 60*time.Second, func() (bool, string) {
		for _, n := range g.slaves() {
			if diff := differ(g.master.store(), n.store(), r.o.apache); diff != "" {
				return false, fmt.Sprintf("broker %d: %s", n.no, diff)
			}
		}
		return true, ""
	}); err != nil {
		r.find("%v", err)
	}
	if err := r.excuse(g.master); err != nil {
		return err
	}
	for _, i := range r.excused {
		if i.To > i.From {
			r.t.degradedBytes += i.To - i.From
		}
	}
	if !r.o.apache {
		if err := g.wait("the same committed offsets", 30*time.Second, r.sameOffsets); err != nil {
			r.find("%v", err)
		}
	}
	for _, n := range append([]*node{g.master}, g.slaves()...) {
		if err := n.proc.stop(time.Minute); err != nil {
			r.find("broker %d: %v; %s", n.no, err, tail(n.log(), 5))
		}
	}
	log, err := r.compare()
	if err != nil {
		return err
	}
	r.messages(log)
	return nil
}

// compare looks at the three stores and returns the log of the master.
func (r *round) compare() (*storecheck.Log, error) {
	if r.o.apache {
		return storecheck.ReadLog(vfs.OS, r.g.master.file("commitlog"))
	}
	var first *storecheck.Stopped
	var offsets map[string]any
	for _, n := range append([]*node{r.g.master}, r.g.slaves()...) {
		got, errs := storecheck.CheckStopped(vfs.OS, n.store(), storecheck.Options{Slots: indexSlots})
		for _, err := range errs[:min(len(errs), 5)] {
			r.find("broker %d: %v", n.no, err)
		}
		if got == nil {
			return nil, fmt.Errorf("the store of broker %d cannot be read", n.no)
		}
		o, err := n.offsets()
		if err != nil {
			return nil, err
		}
		if first == nil {
			first, offsets = got, o
			continue
		}
		for k, q := range first.Queues {
			if x := got.Queues[k]; x == nil || x.Max() != q.Max() {
				r.find("queue %s/%d is another one at broker %d", k.Topic, k.ID, n.no)
			}
		}
		if !reflect.DeepEqual(offsets, o) {
			r.find("committed offsets: %v at the master, %v at broker %d", offsets, o, n.no)
		}
	}
	return first.Log, nil
}

// sameOffsets compares what the brokers have saved of committed offsets.
func (r *round) sameOffsets() (bool, string) {
	want, err := r.g.master.offsets()
	for _, n := range r.g.slaves() {
		got, err2 := n.offsets()
		if err = errors.Join(err, err2); err != nil || !reflect.DeepEqual(want, got) {
			return false, fmt.Sprintf("%v at the master, %v at broker %d, %v", want, got, n.no, err)
		}
	}
	return err == nil, fmt.Sprint(err)
}

// offsets are those committed by the group of the load.
func (n *node) offsets() (map[string]any, error) {
	b, err := os.ReadFile(n.file(filepath.Join("config", "consumerOffset.json")))
	if err != nil {
		return nil, err
	}
	// Keys of the inner maps are numbers without quotes.
	at := bytes.Index(b, []byte(`"offsetTable":{`))
	if at < 0 {
		return nil, fmt.Errorf("no table of offsets in %s", n.file(filepath.Join("config", "consumerOffset.json")))
	}
	b = b[at:] // before it is what mqx remembers beside the offsets
	at = bytes.Index(b, []byte(`"`+topic+`@`+consumers+`":{`))
	if at < 0 {
		return nil, nil
	}
	b = b[at+bytes.IndexByte(b[at:], '{'):]
	text := strings.Join(strings.Fields(string(b[:bytes.IndexByte(b, '}')+1])), "")
	for q := range queues {
		for _, before := range []string{"{", ","} {
			text = strings.ReplaceAll(text, fmt.Sprintf("%s%d:", before, q), fmt.Sprintf("%s%q:", before, fmt.Sprint(q)))
		}
	}
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("cannot read the offsets of broker %d: %w: %s", n.no, err, text)
	}
	return out, nil
}

// messages compares the log with the journal, the answers and what the consumer saw.
func (r *round) messages(log *storecheck.Log) {
	there := map[uint64]place{}
	for i := range log.Records {
		if rec := &log.Records[i]; rec.Topic == topic {
			if id, ok := bodyID(rec.Body); ok {
				there[id] = place{rec.QueueID, rec.QueueOffset, id}
			}
		}
	}
	lost := map[uint64]bool{}
	l := r.l
	for id, a := range l.answers {
		if _, ok := there[id]; ok {
			continue
		}
		lost[id] = true
		if why := r.count(a.phys, a.broker, a.when, &r.t.lostAsync, &r.t.lostDegraded, &r.t.lost); why != "" && r.t.lost <= 5 && !r.o.apache {
			r.find("message %d was answered SEND_OK by %s at %s, position %d, queue %d offset %d, and is lost; the log ends at %d", id, a.broker, a.when.Format("15:04:05.000"), a.phys, a.queue, a.queueOffset, log.End)
		}
	}
	for at, s := range l.seen {
		if there[at.id] == at {
			continue
		}
		if why := r.count(s.phys, s.broker, s.when, &r.t.goneAsync, &r.t.goneDegraded, &r.t.gone); why != "" && r.t.gone <= 5 && !r.o.apache {
			r.find("message %d was read from %s at %s, position %d, queue %d offset %d, and is gone", at.id, s.broker, s.when.Format("15:04:05.000"), s.phys, at.queue, at.offset)
		}
	}
	if r.t.lost+r.t.gone > 0 {
		r.find("%d acknowledged messages are lost, %d that were seen are gone", r.t.lost, r.t.gone)
	}
	l.journal.Keep(func(s *storecheck.Send) bool { return !lost[s.ID] })
	for _, err := range l.journal.Check(log) {
		r.find("%v", err)
	}
	sent, _ := l.journal.Counts()
	r.t.sent, r.t.acked, r.t.unsure, r.t.read, r.t.silent = sent, len(l.answers), l.unsure, len(l.seen), l.silent
	for _, n := range r.g.nodes {
		r.t.cuts += n.link.cuts
	}
}

// count puts a message that is not there to its kind; the reason is empty where the level allows it.
func (r *round) count(phys int64, broker string, when time.Time, async, degraded, lost *int) string {
	if r.p.level.name == "async" {
		*async++
		return ""
	}
	for _, e := range r.excused {
		if e.broker == broker && !when.After(e.until) && phys >= e.From && (e.To < 0 || phys < e.To) {
			*degraded++
			return ""
		}
	}
	*lost++
	return "not allowed"
}

// differ tells how two logs differ, "" when they do not. short lets the second begin with a later file.
func differ(a, b string, short bool) string {
	x, err := logFiles(a)
	if err != nil {
		return err.Error()
	}
	y, err := logFiles(b)
	if err != nil {
		return err.Error()
	}
	if len(y) == 0 && len(x) > 0 {
		return "no log"
	}
	least := ""
	for name := range y {
		if least == "" || name < least {
			least = name
		}
	}
	for name, data := range x {
		if short && name < least {
			continue
		}
		if !bytes.Equal(data, y[name]) {
			return fmt.Sprintf("file %s: %d bytes at the master, %d there", name, len(data), len(y[name]))
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			return fmt.Sprintf("file %s is not at the master", name)
		}
	}
	return ""
}

// logFiles are the files of a log without the zeros at their ends.
func logFiles(store string) (map[string][]byte, error) {
	out := map[string][]byte{}
	files, err := filepath.Glob(filepath.Join(store, "commitlog", "*"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if data = bytes.TrimRight(data, "\x00"); len(data) > 0 {
			out[filepath.Base(f)] = data
		}
	}
	return out, nil
}
