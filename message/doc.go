// Package message holds the message of Apache RocketMQ and the bytes it is stored and sent in: the commit log
// record (versions 1 and 2, IPv4 and IPv6), properties, system flags, message ids, batches, compression, the tag
// hash, and the rules for topic and group names.
//
// Everything here is a pure function of its input: no I/O, no clock, no goroutine. Byte tables are in
// docs/format/record.md, docs/format/properties.md, docs/format/batch.md and docs/format/message-id.md.
//
// # A record in memory
//
// [View] is a record that has been checked once ([ParseView]) and is then read field by field without decoding or
// allocating; [Record] is the same record with all fields taken out ([DecodeRecord]). Both alias the bytes they were
// made from. [Record.Append] encodes outside any lock, with the queue offset, the physical offset and the store time
// left for [PatchOffsets] to fill in under the append lock, and [SealPropCRC] to finish a record with a checksum
// property.
//
// All integers are big-endian, all times milliseconds since 1970-01-01 UTC.
package message
