package commitlog

import "time"

// ExpireRules say which files may go. The newest file never goes.
type ExpireRules struct {
	Now      time.Time
	Reserved time.Duration // files modified before Now-Reserved go
	Force    bool          // files go whatever their age
	MaxFiles int           // at most so many in one call, 0: 10
}

// ExpireResult tells what Expire did.
type ExpireResult struct {
	Removed []FileInfo
	Bytes   int64
	// Next is the oldest file that stays, and Due the time when its age will let it go.
	Next FileInfo
	Due  time.Time
}

// Expire removes files, oldest first, up to the first one that must stay, and moves Min. Views of removed files stay
// valid until they are released; see Hanging.
func (l *Log) Expire(r ExpireRules) (ExpireResult, error) { panic("not written yet") }

// HangingFile is a removed file whose space is not free yet, because views of it are held.
type HangingFile struct {
	FileInfo
	Leases  int
	Removed time.Time
}

// Hanging lists removed files that are still held.
func (l *Log) Hanging() []HangingFile { panic("not written yet") }

// ReclaimHanging gives back the space of files that were removed before t, although they are still held: readers get
// errors instead of bytes. It returns the bytes given back.
func (l *Log) ReclaimHanging(t time.Time) (int64, error) { panic("not written yet") }
