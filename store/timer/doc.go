// Package timer keeps the messages that wait for a time of their own: the
// wheel of slots, one for each tick of the clock, and the log that chains the
// messages of a slot. The files are Apache RocketMQ's (timerwheel, timerlog/,
// config/timercheck, config/timermetrics); docs/format/timer.md has their bytes.
//
// Wheel, Unit, Slot, Checkpoint and Rules are pure: bytes and times in, bytes
// and decisions out. Timer puts them onto files. It has no clock and starts no
// goroutine: whoever owns it says what time it is, hands in what is to wait
// (Add), asks for what is due (NextDue, Open) and says how far it has come
// (Delivered, Passed); Flush makes that durable.
//
//	t, err := timer.Open(cfg, origin)     // loads, recovers
//	err := t.Add(items, now, next, need)  // into wheel and log
//	slot, err := t.OpenSlot(t.NextDue(now))
//	for chunk := slot.Next() ...          // what it holds, oldest first
//	t.Passed(slot.Time, …)                // all of it has been stored
//	t.Flush(…)                            // durable: log, wheel, checkpoint
package timer
