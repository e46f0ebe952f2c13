package commitlog

// WaitFlushed calls done(nil) once the log is durable up to end: at once when it is already, else from the flusher,
// many calls after one sync. done gets ErrFlushTimeout after SyncFlushTimeout, a FailedError after a failed sync,
// ErrClosed when the log closes first. It is called exactly once and must not block.
func (l *Log) WaitFlushed(end int64, done func(error)) { panic("not written yet") }

// Flush makes everything appended so far durable.
func (l *Log) Flush() error { panic("not written yet") }

// KickFlush wakes the flusher of a SyncFlush log without waiting.
func (l *Log) KickFlush() { panic("not written yet") }
