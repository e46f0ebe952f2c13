// Package inspect reads a store directory, mqx's or Apache RocketMQ's, as it lies on disk: without the broker's lock,
// without changing anything, and also while a broker is running on it.
//
// A Dir is made by Open. It knows what kind of directory it is (Kinds), the files of each part, and gives walkers: Log
// for records, Queue for the units of a consume queue, IndexFile for the key index, JSON for the files of config/.
//
// What a Dir knows is a snapshot: the files that were there when it was opened. A broker that is running adds records
// behind it, and deletes files; a file that has gone since then is an error that wraps fs.ErrNotExist.
//
// All sizes are those found on disk; nothing is assumed of broker.conf. All reads are pread into bounded buffers, and
// what was not in the page cache before is put out of it again, so that a broker beside is not disturbed.
package inspect
