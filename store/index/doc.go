// Package index finds messages by key: hash tables in files, in which every key of a message has an entry that points to
// the message's record and to the previous entry with the same slot. The bytes are docs/format/index.md.
//
// Files are created at full size, sparse, and written with pwrite from a cache of the newest file's slots and entries,
// so that adding a key costs no system call and a full disk is an error. Queries see what is cached. The hash does not
// identify a key: whoever queries compares topic and key with the record.
package index
