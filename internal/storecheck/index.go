package storecheck

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf16"

	"mqx/internal/vfs"
)

// Index file layout.
const (
	indexHead  = 40
	indexSlot  = 4
	indexEntry = 20
)

// javaHash is String.hashCode.
func javaHash(s string) int32 {
	h := int32(0)
	for _, c := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(c)
	}
	return h
}

func keyHash(topic, key string) int32 {
	h := javaHash(topic + "#" + key)
	if h == math.MinInt32 {
		return 0
	}
	return max(h, -h)
}

// keyHashes are the hashes under which a record is in the index, in order.
func keyHashes(r *Record) []int32 {
	var out []int32
	if u, ok := r.Properties["UNIQ_KEY"]; ok {
		out = append(out, keyHash(r.Topic, u))
	}
	for word := range strings.SplitSeq(r.Properties["KEYS"], " ") {
		if word != "" {
			out = append(out, keyHash(r.Topic, word))
		}
	}
	if tags, ok := r.Properties["TAGS"]; ok {
		out = append(out, keyHash(r.Topic, "T#"+tags))
	}
	return out
}

// IndexEntry is one entry of the index files.
type IndexEntry struct {
	Hash int32
	Phys int64
}

// Index is the entries of all index files, in order.
type Index struct {
	Entries []IndexEntry
	Heads   []int // where a file begins in Entries
	Bad     []string
}

// ReadIndex reads the index files of a stopped store, of the given number of slots, and checks each for itself: heads,
// slots, chains, times.
func ReadIndex(fsys vfs.FS, root string, slots int, l *Log) (*Index, error) {
	dir := filepath.Join(root, "index")
	x := &Index{}
	entries, err := readDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	times := map[int64]int64{}
	for i := range l.Records {
		times[l.Records[i].Phys] = l.Records[i].StoreTime
	}
	for _, e := range entries {
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		x.Heads = append(x.Heads, len(x.Entries))
		x.file(e.Name(), b, slots, times)
	}
	return x, nil
}

func (x *Index) file(name string, b []byte, slots int, times map[int64]int64) {
	bad := func(format string, args ...any) {
		if len(x.Bad) < 10 {
			x.Bad = append(x.Bad, fmt.Sprintf("index file %s: %s", name, fmt.Sprintf(format, args...)))
		}
	}
	table := indexHead + indexSlot*slots
	if len(b) < table {
		bad("%d bytes are too few for %d slots", len(b), slots)
		return
	}
	head := decoder{b: b}
	beginTime, endTime, beginPhys, endPhys := int64(head.u64()), int64(head.u64()), int64(head.u64()), int64(head.u64())
	used, count := int(head.u32()), int(head.u32())
	if count < 1 || table+indexEntry*count > len(b) {
		bad("counts %d entries in %d bytes", count, len(b))
		return
	}
	heads := map[int32]int32{} // slot -> newest entry, as it should be
	usedWant := 0
	for k := 1; k < count; k++ {
		d := decoder{b: b[table+indexEntry*k:]}
		hash, phys, diff, prev := int32(d.u32()), int64(d.u64()), int32(d.u32()), int32(d.u32())
		slot := hash % int32(slots)
		if prev != heads[slot] {
			bad("entry %d: the entry before it in its slot is %d, want %d", k, prev, heads[slot])
		}
		if heads[slot] == 0 {
			usedWant++
		}
		heads[slot] = int32(k)
		if t, ok := times[phys]; ok {
			if want := max(0, (t-beginTime)/1000); int64(diff) != want {
				bad("entry %d: %d s behind the first, want %d", k, diff, want)
			}
			if k == count-1 && t != endTime || k == 1 && t != beginTime {
				bad("entry %d is of %d, the head says %d to %d", k, t, beginTime, endTime)
			}
		}
		if k == 1 && phys != beginPhys || k == count-1 && phys != endPhys {
			bad("entry %d is of %d, the head says %d to %d", k, phys, beginPhys, endPhys)
		}
		x.Entries = append(x.Entries, IndexEntry{hash, phys})
	}
	for slot := range int32(slots) {
		if got := int32(binary.BigEndian.Uint32(b[indexHead+indexSlot*int(slot):])); got != heads[slot] {
			bad("slot %d holds entry %d, want %d", slot, got, heads[slot])
		}
	}
	if used != usedWant {
		bad("the head counts %d used slots, want %d", used, usedWant)
	}
}

// CheckIndex builds the entries from the log and compares. The entries of a record with which a file begins may stand
// twice: a crash between the two files leaves it to the next start to add them all.
func CheckIndex(l *Log, x *Index) []error {
	var errs []error
	add := func(format string, args ...any) {
		if len(errs) < 10 {
			errs = append(errs, fmt.Errorf("index: "+format, args...))
		}
	}
	for _, bad := range x.Bad {
		add("%s", bad)
	}
	got := x.Entries
	for len(got) > 0 && got[0].Phys < l.Min {
		got = got[1:] // of records that have left the log
	}
	at := 0
	for i := range l.Records {
		r := &l.Records[i]
		if r.SysFlag&0xC == 0xC {
			continue
		}
		hashes := keyHashes(r)
		n := 0
		for at+n < len(got) && got[at+n].Phys == r.Phys {
			n++
		}
		if n != len(hashes) && !(n > len(hashes) && n <= 2*len(hashes) && isRepeat(got[at:at+n], hashes)) {
			skipped := len(x.Entries) - len(got)
			add("%d entries for the record at %d, want %d; entry %d and its neighbours: %v; files begin at %v", n, r.Phys, len(hashes), at+skipped,
				got[max(0, min(at-4, len(got))):min(at+n+4, len(got))], x.Heads)
			if n == 0 && at < len(got) && got[at].Phys < r.Phys {
				return errs
			}
			at += n
			continue
		}
		for j := range hashes {
			if e := got[at+n-len(hashes)+j]; e.Hash != hashes[j] {
				add("entry of %d has hash %d, want %d", r.Phys, e.Hash, hashes[j])
			}
		}
		at += n
	}
	if at < len(got) {
		add("%d entries behind those of the last record, the first of %d", len(got)-at, got[at].Phys)
	}
	return errs
}

// isRepeat: the last entries are all of the record's, those before a part of them.
func isRepeat(got []IndexEntry, hashes []int32) bool {
	for j, e := range got[:len(got)-len(hashes)] {
		if e.Hash != hashes[j] {
			return false
		}
	}
	return true
}
