// Package mapped is the one place where files are mapped into memory. A File is an open file with an optional shared
// mapping; both are counted by leases, so that closing or deleting the file under a reader leaves its bytes valid
// until the reader lets go. Copies out of a mapping are guarded: memory that is gone because the file was truncated by
// somebody else is an error of that read, not the end of the process.
package mapped
