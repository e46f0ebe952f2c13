package crash

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/storecheck"
	"mqx/remoting"
)

// offsetKey names a committed offset.
type offsetKey struct {
	group, topic string
	queue        int32
}

// offsetBook is what clients committed. It is safe to share.
type offsetBook struct {
	mu struct {
		sync.Mutex
		sent  map[offsetKey]int64 // the most that was sent
		acked map[offsetKey][]commit
		last  map[offsetKey]int64 // what the broker said before it was told to stop, with nothing in flight
	}
}

// commit is an offset that the broker has taken.
type commit struct {
	at     time.Time
	offset int64
}

func newOffsetBook() *offsetBook {
	b := &offsetBook{}
	b.mu.sent, b.mu.acked = map[offsetKey]int64{}, map[offsetKey][]commit{}
	return b
}

// next is the offset to commit next, and notes that it is sent.
func (b *offsetBook) next(k offsetKey, step int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.sent[k] += step
	return b.mu.sent[k]
}

// mayCommit notes that a consumer may commit an offset any time.
func (b *offsetBook) mayCommit(k offsetKey, offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.sent[k] = max(b.mu.sent[k], offset)
}

func (b *offsetBook) taken(k offsetKey, offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.acked[k] = append(b.mu.acked[k], commit{time.Now(), offset})
}

// drained asks the broker for all offsets: nobody commits any more, so that this is what a clean stop must leave.
func (b *offsetBook) drained(s *life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.last = map[offsetKey]int64{}
	for k := range b.mu.sent {
		got, err := s.askOffset(remoting.ReqQueryConsumerOffset, k.query())
		var answer *remoting.ResponseError
		switch {
		case err == nil:
			b.mu.last[k] = got
		case !errors.As(err, &answer):
			return // the broker is gone: it passed its point
		}
		if list := b.mu.acked[k]; len(list) > 0 && got < list[len(list)-1].offset {
			s.failf("committed offset of %v is %d (%v), %d was taken", k, got, err, list[len(list)-1].offset)
		}
	}
}

func (k offsetKey) query() *remoting.QueryConsumerOffsetHeader {
	return &remoting.QueryConsumerOffsetHeader{ConsumerGroup: k.group, Topic: k.topic, QueueID: k.queue, SetZeroIfNotFound: remoting.Some(false)}
}

// afterDeath reads what is on disk and compares it with what was committed: not above, and not older than the time
// between two saves. It returns what the next broker must find.
func (b *offsetBook) afterDeath(s *life, at time.Time) map[offsetKey]int64 {
	saved := readOffsets(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checkMostLocked(s, saved, "on disk")
	for k, list := range b.mu.acked {
		least := int64(-1)
		for _, c := range list {
			if at.Sub(c.at) > offsetsOldest {
				least = max(least, c.offset)
			}
		}
		if got, ok := saved[k]; least >= 0 && (!ok || got < least) {
			s.failf("committed offset of %v on disk is %d (there: %v); %d was taken more than %s before the death", k, got, ok, least, offsetsOldest)
		}
	}
	most := maps.Clone(saved)      // a broker that dies while it starts may not have got so far as to cut
	for k, offset := range saved { // a broker that starts after a death cuts what lies behind the end of its queue
		end := int64(0)
		if q := s.state.Queues[storecheck.QueueKey{Topic: k.topic, ID: k.queue}]; q != nil {
			end = q.Max()
		}
		saved[k] = min(offset, end)
	}
	b.startFromLocked(saved, most)
	return saved
}

// afterStop reads what a clean stop left: exactly what was committed.
func (b *offsetBook) afterStop(s *life) map[offsetKey]int64 {
	saved := readOffsets(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checkMostLocked(s, saved, "after a clean stop")
	for k, want := range b.mu.last {
		if saved[k] != want {
			s.failf("committed offset of %v after a clean stop is %d, want %d", k, saved[k], want)
		}
	}
	b.startFromLocked(saved, saved)
	return saved
}

// checkMostLocked checks that no offset is above what clients committed. The consumers may be where their queue begins:
// when retention has deleted what they had still to read, they go on there.
func (b *offsetBook) checkMostLocked(s *life, saved map[offsetKey]int64, when string) {
	for k, offset := range saved {
		most := b.mu.sent[k]
		if q := s.state.Queues[storecheck.QueueKey{Topic: k.topic, ID: k.queue}]; q != nil && k.group == consumerGroup {
			most = max(most, q.Min(s.state.Log.Min))
		}
		if offset > most {
			s.failf("committed offset of %v %s is %d, no client committed more than %d", k, when, offset, most)
		}
	}
}

// startFromLocked forgets what was before: saved is what counts now, and no offset may be above most.
func (b *offsetBook) startFromLocked(saved, most map[offsetKey]int64) {
	b.mu.sent = maps.Clone(most)
	b.mu.acked = map[offsetKey][]commit{}
	for k, offset := range saved {
		b.mu.acked[k] = []commit{{time.Now(), offset}}
	}
}

// check asks the broker for all of them.
func (b *offsetBook) check(s *life) {
	for k, want := range s.saved {
		got, err := s.askOffset(remoting.ReqQueryConsumerOffset, k.query())
		if err != nil && s.perished() {
			return
		}
		if err != nil {
			s.failf("committed offset of %v: %v", k, err)
		}
		if got != want {
			s.failf("committed offset of %v is %d, on disk it was %d", k, got, want)
		}
	}
}

// readOffsets reads consumerOffset.json, or its backup when that is missing or cannot be read, as a broker does.
func readOffsets(s *life) map[offsetKey]int64 {
	out := map[offsetKey]int64{}
	for _, name := range []string{"consumerOffset.json", "consumerOffset.json.bak"} {
		b, err := os.ReadFile(filepath.Join(s.root, "config", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var read remoting.ConsumerOffsets
		if err == nil {
			err = fastjson.Unmarshal(b, &read)
		}
		if err != nil {
			s.failf("%s of a broker that was killed cannot be read: %v", name, err)
		}
		for key, queues := range read.OffsetTable {
			topic, group, _ := strings.Cut(key, "@")
			for q, offset := range queues {
				if slices.Contains(topics, topic) {
					out[offsetKey{group, topic, q}] = offset
				}
			}
		}
		return out
	}
	return out
}
