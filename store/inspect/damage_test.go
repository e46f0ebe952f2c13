package inspect_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mqx/message"
	"mqx/store/inspect"
)

// cover says what verify has to make of a damage.
type cover int

const (
	none cover = iota // nothing covers it: no finding
	gray              // some readings cover it: either way is right
	must              // something covers it: there is a finding
)

// damage is what was done to a store.
type damage struct {
	what  string
	cover cover
	hurt  func(phys, end int64) bool // records that it touches
}

// image is a sound store as it was before it was damaged.
type image struct {
	root  string
	files []string // that a damage may choose, inside root
	log   map[string][]byte
	recs  []imageRecord
	clean bool
	only  string // if set, files with this beginning are damaged
}

type imageRecord struct {
	phys, size int64
	raw        message.View
}

func (r imageRecord) end() int64 { return r.phys + r.size }

// readImage reads the records of a sound store, in an own way: every file from its start to its first bytes that are no
// record.
func readImage(root string) (*image, error) {
	im := &image{root: root, log: map[string][]byte{}}
	_, err := os.Stat(filepath.Join(root, "abort"))
	im.clean = err != nil
	err = filepath.Walk(root, func(path string, st os.FileInfo, err error) error {
		if err != nil || st.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch top, _, _ := strings.Cut(rel, string(filepath.Separator)); top {
		case "commitlog", "consumequeue", "batchconsumequeue", "index", "config", "checkpoint", "mqx", "consumequeue_ext":
			im.files = append(im.files, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range im.files {
		if !strings.HasPrefix(name, "commitlog/") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		im.log[name] = b
		start := logStart(name)
		for at := int64(0); at+8 < int64(len(b)); {
			v, err := message.ParseView(b[at:], message.DecodeOptions{})
			if err != nil {
				break
			}
			im.recs = append(im.recs, imageRecord{start + at, int64(len(v)), v})
			at += int64(len(v))
		}
	}
	return im, nil
}

func logStart(name string) int64 {
	var n int64
	if _, err := fmt.Sscan(strings.TrimLeft(filepath.Base(name), "0")+" ", &n); err != nil {
		return 0
	}
	return n
}

func (im *image) logMin() int64 {
	low := int64(-1)
	for name := range im.log {
		if s := logStart(name); low < 0 || s < low {
			low = s
		}
	}
	return low
}

// coverLog says what covers a byte of a log file.
func (im *image) coverLog(name string, at int64) cover {
	phys := logStart(name) + at
	for _, r := range im.recs {
		if phys < r.phys || phys >= r.end() {
			continue
		}
		return coverRecord(r.raw, phys-r.phys)
	}
	b := im.log[name]
	last := int64(0) // behind the last record of the file
	for _, r := range im.recs {
		if s := logStart(name); r.phys >= s && r.end() <= s+int64(len(b)) {
			last = r.end() - s
		}
	}
	if at >= last+4 && at < last+8 && binary.BigEndian.Uint32(b[last+4:]) == 0xCBD43194 {
		return must // the magic code of the blank
	}
	if binary.BigEndian.Uint32(b[last+4:]) == 0xCBD43194 {
		if at < last+4 {
			return gray
		}
		return none // behind the head of the blank
	}
	return must // zeros behind the end
}

func coverRecord(r message.View, at int64) cover {
	if message.HasPropCRC(r) {
		return must
	}
	born, hosts := int64(48), int64(8)
	if r.SysFlag()&message.FlagBornHostV6 != 0 {
		hosts = 20
	}
	stored := born + hosts // store timestamp
	host2 := int64(8)
	if r.SysFlag()&message.FlagStoreHostV6 != 0 {
		host2 = 20
	}
	bodyLen := stored + 8 + host2 + 4 + 8
	hasUnit := r.Transaction() != message.TransactionPrepared && r.Transaction() != message.TransactionRollback
	topicLen := bodyLen + 4 + int64(r.BodyLen())
	wide := int64(1)
	if r.Magic() == message.MagicV2 {
		wide = 2
	}
	propLen := topicLen + wide + int64(len(r.Topic()))
	switch {
	case at < 12:
		return must
	case at < 16, at >= 20 && at < 28:
		if hasUnit {
			return must
		}
		return none
	case at < 20:
		return none // flag
	case at < 36:
		return must // physical offset
	case at < 40:
		return gray // system flag
	case at < stored:
		return none // born
	case at < stored+8:
		return gray // store time
	case at < bodyLen:
		return none // store host, times consumed, half message
	case at < propLen+2:
		return must
	}
	return coverProps(r, int(at-propLen-2))
}

// coverProps: the keys and tags are covered by index and tags code, the rest by nothing; what changes there may make a
// property of another name, though.
func coverProps(r message.View, at int) cover {
	props := r.Properties()
	for start := 0; start < len(props); {
		end := len(props)
		if n := bytes.IndexByte(props[start:], 2); n >= 0 {
			end = start + n
		}
		name, _, _ := bytes.Cut(props[start:end], []byte{1})
		if at >= start && at <= end {
			switch string(name) {
			case "TAGS", "KEYS", "UNIQ_KEY", "INNER_NUM", "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET":
				if at < end && lastOf(props, string(name)) == start {
					return must
				}
			}
			return gray
		}
		start = end + 1
	}
	return gray
}

func lastOf(props []byte, name string) int {
	last := -1
	for start := 0; start < len(props); {
		end := len(props)
		if n := bytes.IndexByte(props[start:], 2); n >= 0 {
			end = start + n
		}
		if n, v, ok := bytes.Cut(props[start:end], []byte{1}); ok && string(n) == name && len(v) > 0 {
			last = start
		}
		start = end + 1
	}
	return last
}

// coverFile says what covers a byte of a file.
func (im *image) coverFile(name string, b []byte, at int64) cover {
	top, _, _ := strings.Cut(name, "/")
	be := binary.BigEndian
	switch top {
	case "commitlog":
		return im.coverLog(name, at)
	case "consumequeue":
		u := b[at/20*20:][:20]
		phys, size := int64(be.Uint64(u)), int32(be.Uint32(u[8:]))
		if bytes.Equal(u, make([]byte, 20)) {
			return must
		}
		if size == 0x7FFFFFFF || phys < im.logMin() {
			return gray
		}
		return must
	case "batchconsumequeue":
		if at%46 >= 42 {
			return none
		}
		if at%46 >= 38 && bytes.Equal(b[at/46*46:][:46], make([]byte, 46)) {
			return gray
		}
		return must
	case "index":
		slots := int64(len(b)-40) / 84
		count := int64(be.Uint32(b[36:]))
		first := 40 + 4*slots + 20
		switch {
		case at < first-20:
			return must
		case at < first, at >= 40+4*slots+20*count:
			return none
		}
		if int64(be.Uint64(b[(at-first)/20*20+first+4:])) < im.logMin() {
			return gray
		}
		return must
	case "mqx":
		return must
	}
	return gray
}

// newDamage chooses a damage and does it to a copy of the store.
func (im *image) newDamage(rnd *rand.Rand) (damage, error) {
	if ext := im.extUnits(); len(ext) > 0 && rnd.IntN(2) == 0 {
		return im.flipExt(rnd, ext)
	}
	switch k := rnd.IntN(100); {
	case k < 5 && len(im.log) > 1:
		return im.grow(rnd)
	case k < 55:
		return im.flips(rnd, 1)
	case k < 65:
		return im.flips(rnd, 2+rnd.IntN(6))
	case k < 75:
		return im.zeroPage(rnd)
	case k < 83:
		return im.cut(rnd)
	case k < 90:
		return im.remove(rnd)
	case k < 95:
		return im.swap(rnd)
	}
	return im.foreign(rnd)
}

// pick chooses a file; files with much content are likelier.
func (im *image) pick(rnd *rand.Rand, prefix string) (string, []byte, error) {
	var list []string
	for _, f := range im.files {
		if strings.HasPrefix(f, prefix) {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return "", nil, nil
	}
	name := list[rnd.IntN(len(list))]
	b, err := os.ReadFile(filepath.Join(im.root, name))
	return name, b, err
}

var parts = []string{"commitlog/", "commitlog/", "commitlog/", "consumequeue/", "consumequeue/", "index/", "index/", "config/", "checkpoint", "batchconsumequeue/", "mqx/stopped"}

func (im *image) pickPart(rnd *rand.Rand) (string, []byte, error) {
	if im.only != "" {
		return im.pick(rnd, im.only)
	}
	for {
		name, b, err := im.pick(rnd, parts[rnd.IntN(len(parts))])
		if err != nil || name != "" {
			return name, b, err
		}
	}
}

func untouched(int64, int64) bool { return false }

func inRange(from, to int64) func(int64, int64) bool {
	return func(phys, end int64) bool { return phys < to && end > from }
}

// place chooses a byte: mostly where there is something.
func place(rnd *rand.Rand, b []byte) int64 {
	for range 50 {
		at := rnd.Int64N(int64(len(b)))
		if b[at] != 0 || rnd.IntN(30) == 0 {
			return at
		}
	}
	n := len(bytes.TrimRight(b, "\x00"))
	return rnd.Int64N(int64(max(1, min(len(b), n))))
}

func (im *image) flips(rnd *rand.Rand, n int) (damage, error) {
	d := damage{cover: none, hurt: untouched}
	for range n {
		name, b, err := im.pickPart(rnd)
		if err != nil || len(b) == 0 {
			return d, err
		}
		at := place(rnd, b)
		c := im.coverFile(name, b, at)
		if n > 1 && c == none {
			c = gray // together they may mean something
		}
		old := b[at]
		b[at] ^= byte(1 + rnd.IntN(255))
		d.what += fmt.Sprintf("%s byte %d %02x->%02x (%d); ", name, at, old, b[at], c)
		d.cover = max(d.cover, c)
		if strings.HasPrefix(name, "commitlog/") {
			phys, hurt := logStart(name)+at, d.hurt
			d.hurt = func(from, to int64) bool { return hurt(from, to) || phys >= from && phys < to }
			im.log[name] = b
		}
		if err := os.WriteFile(filepath.Join(im.root, name), b, 0o644); err != nil {
			return d, err
		}
	}
	return d, nil
}

// extUnits are the files of extension units and the places of the units that queues name in them.
func (im *image) extUnits() map[string][]int64 {
	out := map[string][]int64{}
	for _, name := range im.files {
		if !strings.HasPrefix(name, "consumequeue/") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(im.root, name))
		if err != nil {
			return nil
		}
		for ; len(b) >= 20; b = b[20:] {
			code := int64(binary.BigEndian.Uint64(b[12:]))
			if binary.BigEndian.Uint32(b[8:]) == 0 || code >= math.MinInt32 {
				continue
			}
			dir := strings.Replace(filepath.Dir(name), "consumequeue/", "consumequeue_ext/", 1)
			file := dir + "/" + inspect.FileName(0)
			out[file] = append(out[file], code-math.MinInt64)
		}
	}
	return out
}

// flipExt changes a byte of an extension unit: of its head, which is covered, or of its bit map, which is not.
func (im *image) flipExt(rnd *rand.Rand, units map[string][]int64) (damage, error) {
	name := slices.Sorted(maps.Keys(units))[rnd.IntN(len(units))]
	b, err := os.ReadFile(filepath.Join(im.root, name))
	if err != nil {
		return damage{hurt: untouched}, err
	}
	unit := units[name][rnd.IntN(len(units[name]))]
	at := rnd.Int64N(int64(binary.BigEndian.Uint16(b[unit:])))
	d := damage{cover: must, hurt: untouched}
	if at >= 20 {
		d.cover = none
	}
	old := b[unit+at]
	b[unit+at] ^= byte(1 + rnd.IntN(255))
	d.what = fmt.Sprintf("%s byte %d of the unit at %d %02x->%02x", name, at, unit, old, b[unit+at])
	return d, os.WriteFile(filepath.Join(im.root, name), b, 0o644)
}

func (im *image) zeroPage(rnd *rand.Rand) (damage, error) {
	name, b, err := im.pick(rnd, []string{"commitlog/", "commitlog/", "consumequeue/", "index/"}[rnd.IntN(4)])
	if err != nil || name == "" {
		return damage{hurt: untouched}, err
	}
	size := []int{512, 4096}[rnd.IntN(2)]
	at := int(place(rnd, b)) / size * size
	to := min(at+size, len(b))
	d := damage{what: fmt.Sprintf("%s zeroed from %d to %d", name, at, to), cover: none, hurt: untouched}
	for i := at; i < to; i++ {
		if b[i] != 0 {
			d.cover = max(d.cover, im.coverFile(name, b, int64(i)), gray)
		}
	}
	if strings.HasPrefix(name, "commitlog/") {
		d.hurt = inRange(logStart(name)+int64(at), logStart(name)+int64(to))
	}
	clear(b[at:to])
	return d, os.WriteFile(filepath.Join(im.root, name), b, 0o644)
}

func (im *image) cut(rnd *rand.Rand) (damage, error) {
	name, b, err := im.pickPart(rnd)
	if err != nil || len(b) == 0 {
		return damage{hurt: untouched}, err
	}
	used := max(1, len(bytes.TrimRight(b, "\x00")))
	to := rnd.IntN(used)
	d := damage{what: fmt.Sprintf("%s cut to %d of %d bytes", name, to, len(b)), cover: must, hurt: untouched}
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "commitlog":
		d.hurt = inRange(logStart(name)+int64(to), logStart(name)+int64(len(b)))
		if len(im.log) == 1 && (to == 0 || to%4096 == 0) {
			d.cover = gray
		}
	case "consumequeue", "batchconsumequeue", "checkpoint", "mqx", "index":
		d.cover = gray
		if top == "index" && to < 40 || im.clean && (top == "consumequeue" && im.liveUnits(b[to/20*20:]) || top == "batchconsumequeue" && im.liveBatchUnits(b[to/46*46:])) {
			d.cover = must
		}
	case "config":
		if name == "config/timercheck" || strings.HasSuffix(name, ".bak") {
			d.cover = gray
		}
	}
	return d, os.Truncate(filepath.Join(im.root, name), int64(to))
}

// liveUnits reports whether there are units of records of the log in b.
func (im *image) liveUnits(b []byte) bool {
	for ; len(b) >= 20; b = b[20:] {
		if binary.BigEndian.Uint32(b[8:]) != 0 && int64(binary.BigEndian.Uint64(b)) >= im.logMin() {
			return true
		}
	}
	return false
}

// liveBatchUnits is the same of batch queues.
func (im *image) liveBatchUnits(b []byte) bool {
	for ; len(b) >= 46; b = b[46:] {
		if binary.BigEndian.Uint32(b[8:]) != 0 && int64(binary.BigEndian.Uint64(b)) >= im.logMin() {
			return true
		}
	}
	return false
}

// grow makes a log file that has others behind it too long: with zeros, with anything, or with records of its own.
func (im *image) grow(rnd *rand.Rand) (damage, error) {
	names := slices.Sorted(maps.Keys(im.log))
	name := names[rnd.IntN(len(names)-1)]
	b := im.log[name]
	n := []int{1, 7, 8, 91, 92, 200, 2000, len(b)}[rnd.IntN(8)]
	more := make([]byte, n)
	kind := []string{"zeros", "noise", "its beginning"}[rnd.IntN(3)]
	switch kind {
	case "noise":
		for i := range more {
			more[i] = byte(rnd.IntN(256))
		}
	case "its beginning":
		copy(more, b)
	}
	d := damage{what: fmt.Sprintf("%s grown by %d bytes, %s", name, n, kind), cover: must, hurt: untouched}
	return d, os.WriteFile(filepath.Join(im.root, name), append(bytes.Clone(b), more...), 0o644)
}

func (im *image) remove(rnd *rand.Rand) (damage, error) {
	name, b, err := im.pickPart(rnd)
	if err != nil {
		return damage{hurt: untouched}, err
	}
	d := damage{what: name + " removed", cover: gray, hurt: untouched}
	switch top, _, _ := strings.Cut(name, "/"); top {
	case "commitlog":
		d.hurt = inRange(logStart(name), logStart(name)+int64(len(b)))
		some := slices.ContainsFunc(im.recs, func(r imageRecord) bool { return d.hurt(r.phys, r.end()) })
		if logStart(name) > im.logMin() && some {
			d.cover = must
		}
	case "consumequeue", "batchconsumequeue":
		if im.clean && (top == "consumequeue" && im.liveUnits(b) || top == "batchconsumequeue" && im.liveBatchUnits(b)) {
			d.cover = must
		}
	case "checkpoint":
		d.cover = must
	case "config":
		if name == "config/topics.json" {
			d.cover = must
		}
	}
	return d, os.Remove(filepath.Join(im.root, name))
}

func (im *image) swap(rnd *rand.Rand) (damage, error) {
	prefix := []string{"commitlog/", "consumequeue/", "config/"}[rnd.IntN(3)]
	one, b1, err := im.pick(rnd, prefix)
	if err != nil || one == "" {
		return damage{hurt: untouched}, err
	}
	two, b2, err := im.pick(rnd, prefix)
	if err != nil {
		return damage{hurt: untouched}, err
	}
	d := damage{what: fmt.Sprintf("%s and %s changed places", one, two), cover: gray, hurt: untouched}
	if bytes.Equal(b1, b2) {
		d.cover = none
		if prefix == "config/" {
			d.cover = gray
		}
	} else if prefix != "config/" && (im.liveUnits(b1) || im.liveUnits(b2) || prefix == "commitlog/") {
		d.cover = must
	}
	if err := os.WriteFile(filepath.Join(im.root, one), b2, 0o644); err != nil {
		return d, err
	}
	return d, os.WriteFile(filepath.Join(im.root, two), b1, 0o644)
}

func (im *image) foreign(rnd *rand.Rand) (damage, error) {
	name, b, err := im.pick(rnd, []string{"commitlog/", "consumequeue/", "index/"}[rnd.IntN(3)])
	if err != nil || name == "" {
		return damage{hurt: untouched}, err
	}
	as := filepath.Join(filepath.Dir(name), []string{"core.1234", "00000000000000000007", "notes.txt", "x"}[rnd.IntN(4)])
	d := damage{what: as + " added", cover: must, hurt: untouched}
	return d, os.WriteFile(filepath.Join(im.root, as), b[:min(len(b), 100+rnd.IntN(5000))], 0o644)
}
