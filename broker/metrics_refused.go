package broker

import (
	"strings"
	"sync/atomic"

	"mqx/internal/metrics"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// sendRefusals counts the sends that were not answered with success, by what became of them.
// The zero value is ready. It is safe to share.
type sendRefusals struct {
	codes    [256]atomic.Uint64 // response codes of sends that were refused before the store saw them
	statuses [store.LMQConsumeQueueNumExceeded + 1]atomic.Uint64
}

// checked counts a send that was refused with a response code.
func (r *sendRefusals) checked(code int32) {
	if code >= 0 && int(code) < len(r.codes) {
		r.codes[code].Add(1)
	}
}

// put counts what the store said to a send.
func (r *sendRefusals) put(s store.Status) {
	if s != store.PutOK && s >= 0 && int(s) < len(r.statuses) {
		r.statuses[s].Add(1)
	}
}

// stageOf is where a send was when the store gave it a status.
func stageOf(s store.Status) string {
	switch s {
	case store.OSPageCacheBusy:
		return "locked" // the append before it held the lock
	case store.FlushDiskTimeout:
		return "flushed"
	case store.FlushSlaveTimeout, store.SlaveNotAvailable, store.InSyncReplicasNotEnough:
		return "replicated"
	case store.CreateFileFailed, store.UnknownError:
		return "appended"
	}
	return "checked"
}

// metrics writes the counts: queued are those that waited for a worker in vain (send is
// their class), then what was looked at and refused, then what the store said (N131).
func (r *sendRefusals) metrics(s *metrics.Scrape, send server.ClassStats) {
	count := func(stage, reason string, n uint64) {
		s.Counter("mqx_send_refused_total", "Sends that were not answered with success, by how far they had come (queued, checked, locked, appended, flushed, replicated) and why.",
			float64(n), s.Labels("stage", stage, "reason", reason))
	}
	count("queued", "full", send.Overloaded)
	count("queued", "late", send.Late)
	for code := range r.codes {
		if n := r.codes[code].Load(); n > 0 {
			count("checked", strings.ToLower(remoting.ResponseName(int32(code))), n)
		}
	}
	for i := range r.statuses {
		if status := store.Status(i); status != store.PutOK {
			count(stageOf(status), strings.ToLower(status.String()), r.statuses[i].Load())
		}
	}
}
