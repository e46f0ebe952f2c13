package broker

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// delayProgress is how far each level has been delivered, in delayOffset.json.
type delayProgress struct {
	fsys  vfs.FS
	file  string
	every time.Duration
	step  int64 // updates a data version
	now   func() time.Time
	log   *slog.Logger
	soon  chan struct{} // save before the next turn
	moved func()        // told of each change, may be nil

	dirty  atomic.Bool
	saving sync.Mutex
	mu     struct {
		sync.Mutex
		updates int64
		version remoting.DataVersion
	}
}

// load reads the file or its backup. With neither usable it fails: beginning at
// nothing would deliver everything again.
func (p *delayProgress) load() (map[int32]int64, error) {
	var read remoting.DelayOffsets
	src, err := jsonfile.Load(p.fsys, p.file, func(b []byte) error {
		read = remoting.DelayOffsets{}
		return fastjson.Unmarshal(b, &read)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot load the progress of delayed messages: %w", err)
	}
	switch src {
	case jsonfile.None:
		p.dirty.Store(true) // Apache writes the file of an empty table, too
	case jsonfile.Backup:
		p.log.Warn("the progress of delayed messages was loaded from the backup; some may be delivered again", "file", p.file)
	}
	if read.DataVersion.Timestamp != 0 {
		p.mu.version = read.DataVersion
	}
	return read.OffsetTable, nil
}

// changed counts updates of the table.
func (p *delayProgress) changed(n int64) {
	p.dirty.Store(true)
	if p.moved != nil {
		p.moved()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if (p.mu.updates+n)/p.step > p.mu.updates/p.step {
		p.mu.version = p.mu.version.NextVersion(p.now())
	}
	p.mu.updates += n
}

// run saves at its turns, and soon when that is asked for.
func (p *delayProgress) run(ctx context.Context, save func() error) {
	tick := time.NewTicker(max(time.Millisecond, p.every))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.soon:
		}
		_ = save() // logs its failure and tries again next time
	}
}

// write writes the table.
func (p *delayProgress) write(t remoting.DelayOffsets) error {
	b, err := fastjson.MarshalPretty(t)
	if err == nil {
		err = jsonfile.Save(p.fsys, p.file, b)
	}
	return err
}

// table is the progress as the file and GET_ALL_DELAY_OFFSET hold it.
func (s *delayService) table() remoting.DelayOffsets {
	out := remoting.DelayOffsets{OffsetTable: map[int32]int64{}}
	for _, l := range s.levels {
		if l.known.Load() {
			out.OffsetTable[int32(l.level)] = l.progress.Load()
		}
	}
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	out.DataVersion = s.progress.mu.version
	return out
}

// save writes the progress when it has changed. What it says to be delivered is
// made durable before: a loss of power must not take the copies and leave the
// progress.
func (s *delayService) save() error {
	p := &s.progress
	p.saving.Lock()
	defer p.saving.Unlock()
	if !p.dirty.Swap(false) {
		return nil
	}
	table := s.table()
	err := s.st.Flush()
	if err == nil {
		err = p.write(table)
	}
	if err != nil {
		p.dirty.Store(true)
		p.log.Error("the progress of delayed messages could not be saved", "file", p.file, "error", err)
	}
	return err
}

// delayGroup is the consumer that Apache counts deliveries for.
const delayGroup = "SCHEDULE_CONSUMER"

// countDelivered counts a message that was delivered: read from the topic it
// waited in, and stored in its own.
func (b *Broker) countDelivered(name []byte, _ int32, size int32) {
	c := b.getCounters(message.TopicSchedule, delayGroup)
	c.nums.AddTimes(1, 1)
	c.size.AddTimes(int64(size), 1)
	b.countPut(name, size)
}

// handleDelayOffsets serves GET_ALL_DELAY_OFFSET.
func (b *Broker) handleDelayOffsets(r *server.Request) {
	t := b.delays.table()
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &t)
	p.to(r)
}

// delayInfo adds the state of each level to the runtime information:
// scheduleMessageOffset_LEVEL is "progress,end of the queue".
func (b *Broker) delayInfo(t map[string]string) {
	for _, l := range b.delays.levels {
		if l.known.Load() {
			t["scheduleMessageOffset_"+strconv.Itoa(l.level)] = fmt.Sprintf("%d,%d", l.progress.Load(), b.store.MaxOffset(message.TopicSchedule, l.queue))
		}
	}
}
