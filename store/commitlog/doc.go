// Package commitlog is the log that all messages of a broker go through: files of equal size, each named after the
// offset of its first byte (20 decimal digits), created at full size and filled with records back to back; the rest of
// a file that is too short for the next record holds one blank record (size, blank magic), and the record goes to the
// next file. The bytes are those of docs/format/record.md; Apache RocketMQ writes and reads the same.
//
// Appending happens under one lock, which owns queue offsets, physical offsets and the store time. Durability is the
// flusher's: WaitFlushed calls back when a position has reached the disk, many waiters for one sync. After a failed
// sync the log refuses to be written to, because nobody knows any more what is on the disk.
//
// Opening a log scans nothing. The owner walks it from where its checkpoint says, decides what to do about a broken
// end, and sets the end; only then the log accepts records.
package commitlog
