package inspect

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"mqx/internal/vfs"
	"mqx/internal/words"
)

// Kind is a trait of a store directory that not every reader understands.
type Kind struct {
	Name  KindName
	Path  string // where it shows, inside the directory, slash-separated
	Files int    // below Path
	Bytes int64  // of them
	What  string // one sentence for a person
}

// KindName names a trait.
type KindName string

// The traits. KindFiles is that of every ordinary store and not listed.
const (
	KindRocksDBQueues KindName = "rocksdb-queues" // storeType=defaultRocksDB
	KindRocksDBConfig KindName = "rocksdb-config" // configManagerVersion v2, or storeType=defaultRocksDB
	KindRocksDBTimer  KindName = "rocksdb-store"  // timer, transaction or index in rocksdbstore/
	KindRocksDBPop    KindName = "rocksdb-pop"    // popConsumerKVServiceEnable
	KindRocksDBAuth   KindName = "rocksdb-auth"   // local users and ACLs
	KindCompaction    KindName = "compaction"     // compaction topics
	KindDLedger       KindName = "dledger"        // enableDLegerCommitLog
	KindMultiPath     KindName = "multi-path"     // several storePathCommitLog
	KindLogElsewhere  KindName = "log-elsewhere"  // storePathCommitLog names another directory, or several
	KindController    KindName = "controller"     // epochs of the controller mode
	KindBatchQueues   KindName = "batch-queues"   // queue.type=BatchCQ
	KindExtUnits      KindName = "ext-units"      // enableConsumeQueueExt
	KindTimer         KindName = "timer"          // timerwheel and timerlog
	KindMQX           KindName = "mqx"            // mqx has worked on it
)

// directories that make a kind when they hold something.
var kindDirs = []struct {
	path string
	name KindName
	what string
}{
	{"consumequeue_rocksdb", KindRocksDBQueues, "consume queues in RocksDB (storeType=defaultRocksDB)"},
	{"rocksdbstore", KindRocksDBTimer, "timer, transaction or index in RocksDB"},
	{"kvStore", KindRocksDBPop, "pop records in RocksDB (popConsumerKVServiceEnable)"},
	{"compaction/compactionLog", KindCompaction, "compaction topics"},
	{"compaction/compactionCq", KindCompaction, "compaction topics"},
	{"config/topics", KindRocksDBConfig, "topics in RocksDB"},
	{"config/subscriptionGroups", KindRocksDBConfig, "groups in RocksDB"},
	{"config/consumerOffsets", KindRocksDBConfig, "consumer offsets in RocksDB"},
	{"config/metadata", KindRocksDBConfig, "configuration in RocksDB"},
	{"config/users", KindRocksDBAuth, "users in RocksDB"},
	{"config/acls", KindRocksDBAuth, "ACLs in RocksDB"},
	{nameBatchQueues, KindBatchQueues, "batch consume queues"},
	{nameExtUnits, KindExtUnits, "extension units of consume queues"},
	{nameTimerLog, KindTimer, "timer messages"},
	{"mqx", KindMQX, "notes of mqx"},
}

// Has reports whether the directory has a trait.
func (d *Dir) Has(name KindName) bool {
	for _, k := range d.kinds {
		if k.Name == name {
			return true
		}
	}
	return false
}

// Foreign are the traits that mqx neither serves nor repairs.
func (d *Dir) Foreign() []Kind {
	var out []Kind
	for _, k := range d.kinds {
		switch k.Name {
		case KindRocksDBQueues, KindRocksDBConfig, KindCompaction, KindDLedger, KindMultiPath, KindLogElsewhere:
			out = append(out, k)
		case KindRocksDBTimer, KindRocksDBPop, KindRocksDBAuth, KindController, KindBatchQueues, KindExtUnits, KindTimer, KindMQX:
		}
	}
	return out
}

func isDLedger(e fs.DirEntry) bool { return e.IsDir() && strings.HasPrefix(e.Name(), "dledger-") }

func (d *Dir) findKinds(entries []fs.DirEntry) ([]Kind, error) {
	var out []Kind
	for _, k := range kindDirs {
		files, bytes, err := d.weigh(d.Path(k.path))
		if err != nil {
			return nil, err
		}
		if k.path == "rocksdbstore" || k.path == "kvStore" { // a broker opens them even when nothing uses them
			if files, bytes, err = d.rocksTables(d.Path(k.path)); err != nil {
				return nil, err
			}
		}
		if files > 0 {
			out = append(out, Kind{k.name, k.path, files, bytes, k.what})
		}
	}
	for _, e := range entries {
		if !isDLedger(e) {
			continue
		}
		files, bytes, err := d.weigh(filepath.Join(d.root, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, Kind{KindDLedger, e.Name(), files, bytes, "a DLedger commit log (enableDLegerCommitLog)"})
	}
	if n := len(d.o.CommitLogDirs); n > 1 {
		out = append(out, Kind{KindMultiPath, nameCommitLog, 0, 0, fmt.Sprintf("a commit log in %s", words.Count(n, "directory"))})
	}
	if elsewhere, err := d.logElsewhere(); err != nil {
		return nil, err
	} else if elsewhere {
		out = append(out, Kind{KindLogElsewhere, nameCommitLog, 0, 0, "queues and no commit log: it is in another directory (storePathCommitLog)"})
	}
	if st, ok, err := d.stat("epochFileCheckpoint"); err != nil {
		return nil, err
	} else if ok && st.Size > 0 {
		out = append(out, Kind{KindController, "epochFileCheckpoint", 1, st.Size, "epochs of the controller mode"})
	}
	return out, nil
}

// logElsewhere reports whether there are queues and no directory of the log, nor another kind of log.
func (d *Dir) logElsewhere() (bool, error) {
	if len(d.o.CommitLogDirs) > 0 {
		return false, nil
	}
	if _, err := d.fs.Stat(d.Path(nameCommitLog)); !vfs.Absent(err) {
		return false, err
	}
	entries, err := d.fs.ReadDir(d.root)
	if err != nil || slices.ContainsFunc(entries, isDLedger) {
		return false, err
	}
	keys, err := d.Queues()
	if err != nil {
		return false, err
	}
	for _, k := range keys {
		if files, _, _, err := d.list(d.Path(k.Dir())); err != nil || len(files) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// rocksTables counts the tables of a RocksDB and its write-ahead logs that hold something.
func (d *Dir) rocksTables(dir string) (files int, bytes int64, err error) {
	entries, err := d.fs.ReadDir(dir)
	if vfs.Absent(err) {
		return 0, 0, nil
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".sst" && ext != ".log" {
			continue
		}
		st, err := d.fs.Stat(filepath.Join(dir, e.Name()))
		if vfs.Absent(err) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		if st.Size() > 0 {
			files, bytes = files+1, bytes+st.Size()
		}
	}
	return files, bytes, err
}

// weigh counts the regular files below a directory and their bytes. A missing directory has none.
func (d *Dir) weigh(dir string) (files int, bytes int64, err error) {
	entries, err := d.fs.ReadDir(dir)
	if vfs.Absent(err) {
		return 0, 0, nil
	}
	if err != nil {
		if st, e := d.fs.Stat(dir); e == nil && !st.IsDir() {
			return 0, 0, nil
		}
		return 0, 0, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			n, b, err := d.weigh(path)
			if err != nil {
				return 0, 0, err
			}
			files, bytes = files+n, bytes+b
			continue
		}
		st, err := d.fs.Stat(path)
		if vfs.Absent(err) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		files, bytes = files+1, bytes+st.Size()
	}
	return files, bytes, nil
}
