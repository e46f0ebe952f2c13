package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"mqx/internal/vfs"
	"mqx/internal/words"
	"mqx/message"
	"mqx/store/index"
)

// indexCheck compares the index with the log. Both sides add up the same mixture of hash, position and time for what lies
// between the first and the last record of a file, in any order; where the sums differ the file is compared entry by
// entry. Records with which a file begins or ends may be split between two files and are compared one by one.
type indexCheck struct {
	v     *verifier
	files []*indexFile
	off   bool         // there is none, or it is not to be looked at
	gone  atomic.Bool  // a file went away while it was read
	total atomic.Int64 // entries
	bad   bool         // some file is damaged: what the others lack is not told

	mu struct {
		sync.Mutex
		borders map[int64]*border
		behind  gapCount // records behind the last file
		outside gapCount // records before the first file, or between two
		keyed   int64    // records with keys
	}
}

type indexFile struct {
	*IndexFile
	from, to int64  // positions of the first and last entry
	sum      uint64 // of the file
	want     uint64 // of the log
	damage   string
	at       int64 // byte of the damage
}

// border is a record with which a file begins or ends.
type border struct {
	hashes []int32
	store  int64
	found  bool
}

type gapCount struct{ records, first int64 }

func (g *gapCount) add(phys int64) {
	if g.records == 0 || phys < g.first {
		g.first = phys
	}
	g.records++
}

func (g *gapCount) join(o gapCount) {
	if o.records == 0 {
		return
	}
	if g.records == 0 || o.first < g.first {
		g.first = o.first
	}
	g.records += o.records
}

// mix makes a number of an entry that is unlikely to come out of another one.
func mix(hash, diff int32, phys int64) uint64 {
	x := uint64(phys)*0x9E3779B97F4A7C15 ^ (uint64(uint32(hash))<<32|uint64(uint32(diff)))*0xD6E8FEB86659FD93
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	x ^= x >> 29
	return x
}

// prepare reads all entries and slots of all files: each must agree with itself.
func (x *indexCheck) prepare() error {
	v := x.v
	x.mu.borders = map[int64]*border{}
	if v.o.NoIndex {
		x.off = true
		return nil
	}
	if err := x.others(); err != nil {
		return err
	}
	files, err := v.d.Index()
	if err != nil {
		return err
	}
	for _, f := range files {
		x.files = append(x.files, &indexFile{IndexFile: f, from: -1, to: -1})
	}
	for _, f := range x.files {
		if f.Err == nil && f.Head.Count > 1 {
			x.mu.borders[f.Head.BeginPhys] = &border{}
			x.mu.borders[f.Head.EndPhys] = &border{}
		}
	}
	for _, f := range x.files {
		switch {
		case f.Err != nil:
			f.damage = f.Err.Error()
		case f.Head.Count > 1:
			f.from, f.to = f.Head.BeginPhys, f.Head.EndPhys
		}
	}
	x.files = slices.DeleteFunc(x.files, func(f *indexFile) bool { return f.damage == "" && f.Head.Count <= 1 })
	return nil
}

// maxIndexReaders bounds how many index files are read at the same time: each takes 4 bytes a slot.
const maxIndexReaders = 2

// readEvery reads every step-th file from the first on, beside the log.
func (x *indexCheck) readEvery(first, step int) error {
	var heads []int32
	for i := first; i < len(x.files); i += step {
		f := x.files[i]
		if f.damage != "" {
			continue
		}
		if len(heads) != int(f.Slots) {
			heads = make([]int32, f.Slots)
		}
		clear(heads)
		err := x.readFile(f, heads)
		if errors.Is(err, fs.ErrNotExist) && x.v.live {
			x.gone.Store(true)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bordersIn are the borders that entries of a file may be of: its own, and those of files that overlap it.
func (x *indexCheck) bordersIn(f *indexFile) []int64 {
	var out []int64
	for phys := range x.mu.borders {
		if len(x.files) <= 2 || phys == f.from || phys == f.to || phys > f.from && phys < f.to {
			out = append(out, phys)
		}
	}
	return out
}

func (x *indexCheck) others() error {
	v := x.v
	entries, err := v.d.fs.ReadDir(v.d.Path(nameIndex))
	if vfs.Absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !isIndexName(e.Name()) {
			v.foreign(filepath.Join(v.d.Path(nameIndex), e.Name()), "its name is that of no index file")
		}
	}
	return nil
}

// nearEntries is how many entries are looked at together.
const nearEntries = 256

// slotsOf are the slots of entries. It touches them, in a loop so short that the processor has several of its waits for
// memory at the same time: entries lie at random in slots that are more than its cache holds.
func slotsOf(dst []uint32, b []byte, heads []int32) []uint32 {
	touched := int32(0)
	for n := uint32(len(heads)); len(b) >= indexEntry; b = b[indexEntry:] {
		slot := (binary.BigEndian.Uint32(b) & math.MaxInt32) % n
		touched |= heads[slot]
		dst = append(dst, slot)
	}
	runtime.KeepAlive(touched)
	return dst
}

// readFile checks the chains of one file against its slots. heads are zeros, one a slot.
func (x *indexCheck) readFile(f *indexFile, heads []int32) error {
	used := int32(0)
	bad := func(at int64, format string, args ...any) {
		if f.damage == "" {
			f.damage, f.at = fmt.Sprintf(format, args...), at
		}
	}
	h := f.Head
	own := x.bordersIn(f)
	sum := uint64(0)  // f itself is read by those who look at the log
	var near []uint32 // slots of the entries at hand
	err := f.entryBlocks(x.v.ctx, func(n int32, b []byte) {
		x.total.Add(int64(len(b) / indexEntry))
		for len(b) >= indexEntry {
			some := b[:min(len(b), nearEntries*indexEntry)]
			b = b[len(some):]
			near = slotsOf(near[:0], some, heads)
			for _, slot := range near {
				e := decodeIndexEntry(some, n)
				some = some[indexEntry:]
				if e.Hash < 0 {
					bad(f.entryAt(n), "entry %d has the hash %d", n, e.Hash)
				} else {
					was := heads[slot]
					if e.Prev != was {
						bad(f.entryAt(n)+16, "entry %d says that the one before it in its slot is %d, which is %d", n, e.Prev, was)
					}
					if was == 0 {
						used++
					}
					heads[slot] = n
					if e.Phys >= x.v.logMin && !slices.Contains(own, e.Phys) {
						sum += mix(e.Hash, e.Diff, e.Phys)
					}
				}
				n++
			}
		}
	})
	f.sum = sum
	if err == nil {
		err = x.readEnds(f, bad)
	}
	if err != nil {
		return err
	}
	if f.damage == "" {
		if err := x.readSlots(f, heads, bad); err != nil {
			return err
		}
		if used != h.UsedSlots {
			bad(32, "the head counts %d used slots, there are %d", h.UsedSlots, used)
		}
	}
	return nil
}

// readEnds compares the first and the last entry with the head.
func (x *indexCheck) readEnds(f *indexFile, bad func(int64, string, ...any)) error {
	h := f.Head
	first, err := f.Entry(1)
	if err != nil {
		return err
	}
	last, err := f.Entry(h.Count - 1)
	if err != nil {
		return err
	}
	if first.Phys != h.BeginPhys {
		bad(16, "the head says that it begins with the record at %d, entry 1 is of %d", h.BeginPhys, first.Phys)
	}
	if last.Phys != h.EndPhys {
		bad(24, "the head says that it ends with the record at %d, the last entry is of %d", h.EndPhys, last.Phys)
	}
	return nil
}

func (x *indexCheck) readSlots(f *indexFile, heads []int32, bad func(int64, string, ...any)) error {
	err := f.EachSlot(x.v.ctx, func(slot, head int32) error {
		if heads[slot] != head && !(x.v.live && head >= f.Head.Count) {
			bad(indexHead+indexSlot*int64(slot), "slot %d says %d, its newest entry is %d", slot, head, heads[slot])
		}
		heads[slot] = 0
		return nil
	})
	if err != nil {
		return err
	}
	for slot, head := range heads {
		if head != 0 {
			bad(indexHead+indexSlot*int64(slot), "slot %d says 0, its newest entry is %d", slot, head)
			break
		}
	}
	return nil
}

// indexSums is the log's side, of one worker.
type indexSums struct {
	x       *indexCheck
	want    []uint64
	last    int   // the file of the last record
	calmLo  int64 // between them is no border
	calmHi  int64
	hashes  []int32
	behind  gapCount
	outside gapCount
	keyed   int64
}

func (x *indexCheck) newSums() indexSums {
	// Not smaller than a line of the processor's cache: several write them at the same time.
	return indexSums{x: x, want: make([]uint64, len(x.files), len(x.files)+cacheLine/8)}
}

const cacheLine = 64

// keyHashes are the hashes of a record's keys, in order.
func keyHashes(dst []int32, topic []byte, p *fields) []int32 {
	if len(p.uniq) == 0 && len(p.keys) == 0 && len(p.tags) == 0 {
		return dst
	}
	h := index.NewHasher(topic)
	if len(p.uniq) > 0 {
		dst = append(dst, h.Key(p.uniq))
	}
	for word, rest := message.NextKey(p.keys); word != nil; word, rest = message.NextKey(rest) {
		dst = append(dst, h.Key(word))
	}
	if len(p.tags) > 0 {
		dst = append(dst, h.Tags(p.tags))
	}
	return dst
}

// diffSeconds is the time of an entry.
func diffSeconds(store, begin int64) int32 {
	d := (store - begin) / 1000
	if begin <= 0 || d < 0 {
		return 0
	}
	return int32(min(d, math.MaxInt32))
}

// record adds the entries that a record should have.
func (s *indexSums) record(off int64, rec message.View, p *fields) {
	x := s.x
	if x.off {
		return
	}
	s.hashes = keyHashes(s.hashes[:0], rec.Topic(), p)
	if len(s.hashes) == 0 {
		return
	}
	s.keyed++
	if off <= s.calmLo || off >= s.calmHi {
		s.calm(off)
	}
	if b := x.borderAt(off, s.calmLo, s.calmHi); b != nil {
		x.mu.Lock()
		b.hashes, b.store, b.found = slices.Clone(s.hashes), rec.StoreTimestamp(), true
		x.mu.Unlock()
		return
	}
	i, ok := s.fileOf(off)
	if !ok {
		if i == len(x.files) {
			s.behind.add(off)
		} else {
			s.outside.add(off)
		}
		return
	}
	f := x.files[i]
	diff := diffSeconds(rec.StoreTimestamp(), f.Head.BeginTime)
	for _, h := range s.hashes {
		s.want[i] += mix(h, diff, off)
	}
}

// calm finds the borders around a position.
func (s *indexSums) calm(off int64) {
	s.calmLo, s.calmHi = -1, math.MaxInt64
	for phys := range s.x.mu.borders {
		if phys <= off {
			s.calmLo = max(s.calmLo, phys)
		}
		if phys >= off {
			s.calmHi = min(s.calmHi, phys)
		}
	}
}

// borderAt is the border at a position, which lies between two that are known.
func (x *indexCheck) borderAt(off, lo, hi int64) *border {
	if off > lo && off < hi {
		return nil
	}
	return x.mu.borders[off]
}

func (s *indexSums) fileOf(off int64) (int, bool) {
	files := s.x.files
	if s.last < len(files) && off >= files[s.last].from && off <= files[s.last].to {
		return s.last, true
	}
	for i, f := range files {
		if off < f.from {
			return i, false
		}
		if off <= f.to {
			s.last = i
			return i, true
		}
	}
	return len(files), false
}

// addSums takes in what one worker has added up.
func (x *indexCheck) addSums(s indexSums) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, n := range s.want {
		x.files[i].want += n
	}
	x.mu.behind.join(s.behind)
	x.mu.outside.join(s.outside)
	x.mu.keyed += s.keyed
}

// settle reports what does not agree.
func (x *indexCheck) settle() error {
	v := x.v
	if x.off || x.gone.Load() {
		return nil
	}
	for _, f := range x.files {
		x.bad = x.bad || f.damage != ""
	}
	if len(x.files) == 0 {
		x.none()
		return nil
	}
	for _, f := range x.files {
		if f.damage != "" {
			v.found.add(x.finding(FindIndexDamaged, f, f.at, "the index file is damaged: "+f.damage))
			continue
		}
		agree, err := x.bordersAgree(f)
		if err != nil {
			return err
		}
		if f.sum != f.want || !agree {
			if err := x.compare(f); err != nil {
				if errors.Is(err, fs.ErrNotExist) && v.live {
					continue
				}
				return err
			}
		}
	}
	x.coverage()
	return nil
}

func (x *indexCheck) finding(kind FindingKind, f *indexFile, at int64, what string) *Finding {
	return &Finding{
		Kind: kind, File: x.v.d.Rel(f.Path), Offset: at, Phys: -1, Messages: -1, What: what,
		Mend: "build the index from the log", Derived: true,
	}
}

// none reports an index that is missing altogether.
func (x *indexCheck) none() {
	v := x.v
	if x.mu.keyed == 0 {
		return
	}
	v.found.add(&Finding{
		Kind: FindIndexMissing, File: nameIndex, Offset: -1, Phys: x.mu.behind.first, Messages: x.mu.keyed,
		What: fmt.Sprintf("there is no index; the log holds %s with keys", words.Count(x.mu.keyed, "message")),
		Mend: "build the index from the log", Derived: true, Note: v.live,
	})
}

// coverage reports records that lie in no file.
func (x *indexCheck) coverage() {
	v := x.v
	if x.bad {
		return
	}
	if g := x.mu.outside; g.records > 0 {
		f := x.finding(FindIndexEntries, x.files[0], -1, fmt.Sprintf("the index lacks %s of the log, the first at %d", words.Count(g.records, "message"), g.first))
		f.File, f.Phys, f.Messages = nameIndex, g.first, g.records
		v.found.add(f)
	}
	g := x.mu.behind
	if g.records == 0 {
		return
	}
	last := x.files[len(x.files)-1]
	f := x.finding(FindIndexBehind, last, last.entryAt(last.Head.Count), fmt.Sprintf("the index ends before %s of the log, the first at %d", words.Count(g.records, "message"), g.first))
	f.Phys, f.Messages = g.first, g.records
	f.Note = v.dirty
	v.found.add(f)
}

// bordersAgree compares the entries of the records with which a file begins and ends. One that is not in the log, any
// more or whole, has to be looked at more closely.
func (x *indexCheck) bordersAgree(f *indexFile) (bool, error) {
	first, last := x.mu.borders[f.Head.BeginPhys], x.mu.borders[f.Head.EndPhys]
	if !last.found || (!first.found && f.from >= x.v.logMin) {
		return false, nil
	}
	if (first.found && first.store != f.Head.BeginTime) || last.store != f.Head.EndTime {
		return false, nil
	}
	for _, b := range []struct {
		*border
		phys     int64
		n, until int32
		step     int32
	}{{first, f.Head.BeginPhys, 1, f.Head.Count, 1}, {last, f.Head.EndPhys, f.Head.Count - 1, 0, -1}} {
		if !b.found {
			continue
		}
		var got []IndexEntry
		for n := b.n; n != b.until; n += b.step {
			e, err := f.Entry(n)
			if err != nil {
				return false, err
			}
			if e.Phys != b.phys {
				break
			}
			got = append(got, e)
		}
		if x.group(f, b.phys, b.store, b.hashes, got) != "" {
			return false, nil
		}
	}
	return true, nil
}

// group says what is wrong with the entries of one record, "" for nothing. They may stand there several times, whole or
// in part: a broker that is started again adds those of the last record again.
func (x *indexCheck) group(f *indexFile, phys, store int64, hashes []int32, got []IndexEntry) string {
	diff := diffSeconds(store, f.Head.BeginTime)
	for _, e := range got {
		if !slices.Contains(hashes, e.Hash) {
			return fmt.Sprintf("entry %d for the record at %d has the hash %d, which is that of none of its keys", e.N, phys, e.Hash)
		}
		if e.Diff != diff {
			return fmt.Sprintf("entry %d for the record at %d says %d s, the record %d", e.N, phys, e.Diff, diff)
		}
	}
	if x.shared(f, phys) {
		return ""
	}
	for _, h := range hashes {
		if !slices.ContainsFunc(got, func(e IndexEntry) bool { return e.Hash == h }) {
			return fmt.Sprintf("the record at %s the entry of a key", words.Count(phys, "lack"))
		}
	}
	return ""
}

// shared reports whether the entries of a record stand in two files.
func (x *indexCheck) shared(f *indexFile, phys int64) bool {
	if phys != f.from && phys != f.to {
		return false
	}
	return slices.ContainsFunc(x.files, func(o *indexFile) bool { return o != f && (o.from == phys || o.to == phys) })
}

// entryCompare compares a file with the log entry by entry.
type entryCompare struct {
	x *indexCheck
	f *indexFile

	n      int32 // next entry
	buf    []byte
	bufN   int32 // number of the first entry in buf
	group  []IndexEntry
	hashes []int32
	wrong  int64
	what   string
	at     int64
	ahead  int64
	aheadN int32
}

func (x *indexCheck) compare(f *indexFile) error {
	v := x.v
	c := &entryCompare{x: x, f: f, n: 1}
	p := newFields()
	begin, end := int64(0), int64(0)
	_, err := v.d.log.Walk(v.ctx, WalkOptions{From: max(f.from, v.logMin), To: f.to + 1}, func(off int64, rec message.View) error {
		if v.breakAt(off) != nil || rec.Transaction() == message.TransactionRollback {
			return nil
		}
		if off == f.Head.BeginPhys {
			begin = rec.StoreTimestamp()
		}
		if off == f.Head.EndPhys {
			end = rec.StoreTimestamp()
		}
		p.read(rec.Properties())
		c.hashes = keyHashes(c.hashes[:0], rec.Topic(), p)
		return c.record(off, rec.StoreTimestamp())
	})
	if err != nil {
		return err
	}
	if err := c.before(math.MaxInt64); err != nil {
		return err
	}
	switch {
	case begin != 0 && begin != f.Head.BeginTime:
		c.bad(0, fmt.Sprintf("the head says that the first message was stored at %d, which is %d", f.Head.BeginTime, begin))
	case end != 0 && end != f.Head.EndTime:
		c.bad(8, fmt.Sprintf("the head says that the last message was stored at %d, which is %d", f.Head.EndTime, end))
	}
	if c.wrong > 0 {
		v.found.add(x.finding(FindIndexEntries, f, c.at, fmt.Sprintf("%s of the index file are not what the log says; the first: %s", words.Count(c.wrong, "place"), c.what)))
	}
	if c.ahead > 0 && !v.live {
		y := x.finding(FindIndexAhead, f, f.entryAt(c.aheadN), fmt.Sprintf("%s beyond the end of the log at %d", words.Count(c.ahead, "entry points", "entries point"), v.logEnd))
		v.found.add(y)
	}
	return nil
}

func (c *entryCompare) bad(at int64, what string) {
	if c.wrong == 0 {
		c.what, c.at = what, at
	}
	c.wrong++
}

// record compares the entries of one record.
func (c *entryCompare) record(off, store int64) error {
	if err := c.before(off); err != nil {
		return err
	}
	c.group = c.group[:0]
	for {
		e, ok, err := c.peek()
		if err != nil {
			return err
		}
		if !ok || e.Phys != off {
			break
		}
		c.group = append(c.group, e)
		c.n++
	}
	if what := c.x.group(c.f, off, store, c.hashes, c.group); what != "" {
		c.bad(c.f.entryAt(max(1, c.n-int32(len(c.group)))), what)
	}
	return nil
}

// before passes over entries of records before a position, which should not be there.
func (c *entryCompare) before(off int64) error {
	v := c.x.v
	for {
		e, ok, err := c.peek()
		if err != nil || !ok || e.Phys >= off {
			return err
		}
		c.n++
		if e.Phys < v.logMin {
			continue
		}
		if b := v.breakAt(e.Phys); b != nil {
			b.entries = true
			continue
		}
		if e.Phys >= v.logEnd {
			if c.ahead == 0 {
				c.aheadN = e.N
			}
			c.ahead++
			continue
		}
		c.bad(c.f.entryAt(e.N), fmt.Sprintf("entry %d is of a record at %d, where none has such a key", e.N, e.Phys))
	}
}

// entryChunk is how many entries are read at once.
const entryChunk = 8192

func (c *entryCompare) peek() (IndexEntry, bool, error) {
	if c.n >= c.f.Head.Count {
		return IndexEntry{}, false, nil
	}
	if c.n < c.bufN || int(c.n-c.bufN+1)*indexEntry > len(c.buf) {
		k := min(entryChunk, c.f.Head.Count-c.n)
		c.buf = slices.Grow(c.buf[:0], int(k)*indexEntry)[:k*indexEntry]
		c.bufN = c.n
		if err := c.f.d.fds.readAt(c.f.Path, c.buf, c.f.entryAt(c.n)); err != nil {
			return IndexEntry{}, false, err
		}
	}
	return decodeIndexEntry(c.buf[int(c.n-c.bufN)*indexEntry:], c.n), true, nil
}
