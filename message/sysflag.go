package message

import (
	"bytes"
	"fmt"
)

// Bits of a record's SysFlag. The broker stores them as the producer sent them, except for the host bits.
// Rule: docs/format/record.md, "System flags".
const (
	FlagCompressed      int32 = 0x1  // body is compressed, by the method in FlagCompressionMask
	FlagMultiTags       int32 = 0x2  // several tags
	FlagTransactionMask int32 = 0xC  // transaction state, one of the Transaction constants
	FlagBornHostV6      int32 = 0x10 // born host takes 20 bytes
	FlagStoreHostV6     int32 = 0x20 // store host takes 20 bytes
	FlagNeedUnwrap      int32 = 0x40 // the client has to unwrap an inner batch
	FlagInnerBatch      int32 = 0x80 // body is a batch that is stored as one record
	FlagCompressionMask int32 = 0x700
)

// Values of SysFlag & FlagTransactionMask.
const (
	TransactionNone     int32 = 0x0
	TransactionPrepared int32 = 0x4
	TransactionCommit   int32 = 0x8
	TransactionRollback int32 = 0xC
)

// CompressionType is the method a body is compressed with, as it stands in the SysFlag bits 0x700.
type CompressionType int32

// Compression methods. CompressionLegacy is what old clients set: zlib without a method in the flag.
const (
	CompressionLegacy CompressionType = 0x000
	CompressionLZ4    CompressionType = 0x100
	CompressionZstd   CompressionType = 0x200
	CompressionZlib   CompressionType = 0x300
)

// CompressionOf returns the method in a SysFlag, whether or not FlagCompressed is set.
func CompressionOf(sysFlag int32) CompressionType {
	return CompressionType(sysFlag & FlagCompressionMask)
}

// SysFlag returns the SysFlag bits of a body compressed with t, including FlagCompressed.
func (t CompressionType) SysFlag() int32 { return int32(t) | FlagCompressed }

// String returns LZ4, ZSTD or ZLIB as Apache's clients name them, or the number of an unknown method.
func (t CompressionType) String() string {
	switch t {
	case CompressionLZ4:
		return "LZ4"
	case CompressionZstd:
		return "ZSTD"
	case CompressionZlib, CompressionLegacy:
		return "ZLIB"
	}
	return fmt.Sprintf("compression %#x", int32(t))
}

// Transaction returns the transaction state in a SysFlag, one of the Transaction constants.
func Transaction(sysFlag int32) int32 { return sysFlag & FlagTransactionMask }

// NumberedBatch reports whether a record of a topic with these system flags may hold a batch that is numbered message by
// message, in a batch queue. One that comes again in a retry topic is one message there, with one queue offset.
func NumberedBatch(topic []byte, flags int32) bool {
	return flags&FlagInnerBatch != 0 && !bytes.HasPrefix(topic, []byte(RetryTopicPrefix))
}
