package ha

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"mqx/internal/ballot"
	"mqx/internal/vfs"
)

// TestRoleSimulation plays the roles of a group: three brokers with their role files on disks that lose what was not synced, two
// name servers, links that are cut, an operator who promotes and demotes. It steps, without goroutines or clocks, by the
// rules that brokers act by, 5,000 seeds; MQX_HASIM_ROLES gives another number, MQX_HASIM_ROLE one seed.
func TestRoleSimulation(t *testing.T) {
	if text := os.Getenv("MQX_HASIM_ROLE"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		w := newRoleWorld(t, seed)
		w.verbose = true
		w.live()
		return
	}
	seeds := uint64(5_000)
	if text := os.Getenv("MQX_HASIM_ROLES"); text != "" {
		var err error
		if seeds, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if Raced || testing.Short() {
		seeds /= 10
	}
	var total roleTotals
	for seed := range seeds {
		w := newRoleWorld(t, seed)
		w.live()
		total.add(w.total)
		if t.Failed() {
			t.Fatalf("MQX_HASIM_ROLE=%d runs it again", seed)
		}
	}
	t.Logf("%d seeds: %+v", seeds, total)
}

const (
	roleNodes   = 3
	roleServers = 2
	roleDir     = "/store/mqx/role.json"
)

type roleTotals struct{ promotions, changes, demotions, fenced, ends, together, ties int }

func (a *roleTotals) add(b roleTotals) {
	a.promotions += b.promotions
	a.changes += b.changes
	a.demotions += b.demotions
	a.fenced += b.fenced
	a.ends += b.ends
	a.together += b.together
	a.ties += b.ties
}

// roleNode is a broker: what its configuration says, its disk, and its process while there is one.
type roleNode struct {
	id     int
	master bool // as its configuration says
	disk   *vfs.Mem
	file   *RoleFile // nil: down
	fenced bool
	floor  int64 // an epoch that was durable
}

func (n *roleNode) leads() bool {
	st := n.file.Get()
	return st.Role == "MASTER" || st.Role == "" && n.master
}

func (n *roleNode) serves() bool { return n.file != nil && n.leads() && !n.fenced }

func (n *roleNode) addr() string { return fmt.Sprint("broker", n.id) }

// roleEntry is the master that a name server knows.
type roleEntry struct {
	node  int // -1: none
	epoch int64
}

type roleWorld struct {
	t       *testing.T
	r       *rand.Rand
	verbose bool
	nodes   [roleNodes]*roleNode
	known   [roleServers]roleEntry
	cut     [roleNodes][roleServers]bool // of a broker and a name server
	apart   [roleNodes][roleNodes]bool
	served  map[int64]map[int]bool // by epoch, who took messages
	total   roleTotals
}

func newRoleWorld(t *testing.T, seed uint64) *roleWorld {
	w := &roleWorld{t: t, r: rand.New(rand.NewPCG(seed, 3)), served: map[int64]map[int]bool{}}
	for i := range w.nodes {
		w.nodes[i] = &roleNode{id: i, master: i == 0, disk: vfs.NewMem()}
	}
	for i := range w.known {
		w.known[i].node = -1
	}
	return w
}

func (w *roleWorld) logf(format string, args ...any) {
	if w.verbose {
		w.t.Logf(format, args...)
	}
}

func (w *roleWorld) live() {
	for _, n := range w.nodes {
		w.start(n)
	}
	for range 30 + w.r.IntN(50) {
		w.step()
	}
	// Everything is well again, and the operator does what the brokers ask for.
	w.cut, w.apart = [roleNodes][roleServers]bool{}, [roleNodes][roleNodes]bool{}
	for range 12 {
		for _, n := range w.nodes {
			if n.file == nil {
				w.start(n)
			}
			w.tick(n)
			w.demote(n)
		}
	}
	w.atRest()
}

// atRest checks that one master is left, and that the others follow it.
func (w *roleWorld) atRest() {
	masters := 0
	var epoch int64
	for _, n := range w.nodes {
		if n.serves() {
			masters++
			epoch = n.file.Epoch()
		}
	}
	if masters > 1 {
		w.t.Errorf("%d masters are left", masters)
	}
	for _, n := range w.nodes {
		if st := n.file.Get(); masters == 1 && st.Epoch != epoch {
			w.t.Errorf("broker %d stands at epoch %d, its master at %d", n.id, st.Epoch, epoch)
		}
	}
}

func (w *roleWorld) step() {
	n := w.nodes[w.r.IntN(roleNodes)]
	switch w.r.IntN(12) {
	case 0:
		if n.file != nil {
			w.end(n, n.disk.PowerLoss(w.r.Uint64()))
		}
	case 1:
		if n.file != nil {
			w.end(n, n.disk.Kill())
		}
	case 2, 3:
		if n.file == nil {
			w.start(n)
		}
	case 4:
		w.cut[n.id][w.r.IntN(roleServers)] = w.r.IntN(2) == 0
	case 5:
		m := w.r.IntN(roleNodes)
		on := w.r.IntN(2) == 0
		w.apart[n.id][m], w.apart[m][n.id] = on, on
	case 6:
		w.promote(n)
	case 7:
		w.demote(n)
	default:
		w.tick(n)
	}
	w.serve()
}

// serve lets every master that takes messages take some.
func (w *roleWorld) serve() {
	serving := 0
	for _, n := range w.nodes {
		if !n.serves() {
			continue
		}
		serving++
		e := n.file.Epoch()
		if w.served[e] == nil {
			w.served[e] = map[int]bool{}
		}
		w.served[e][n.id] = true
		if len(w.served[e]) > 1 {
			w.t.Errorf("C9: two brokers took messages with epoch %d: %v", e, w.served[e])
		}
	}
	if serving > 1 {
		w.total.together++
	}
}

// change changes the role of a running broker, whose power may fail meanwhile. It reports whether it still runs.
func (w *roleWorld) change(n *roleNode, f func(*RoleState) error) (runs bool) {
	left, after := 0, (*vfs.Mem)(nil)
	if w.r.IntN(4) == 0 {
		left = 1 + w.r.IntN(12)
	}
	chance := w.r.Uint64()
	n.disk.Inject(func(vfs.Op) error {
		if left--; left == 0 {
			after = n.disk.PowerLoss(chance)
		}
		return nil
	})
	err := n.file.Change(f)
	n.disk.Inject(nil)
	if after != nil {
		w.end(n, after)
		return false
	}
	if err == nil {
		n.floor = n.file.Epoch()
	}
	return true
}

func (w *roleWorld) end(n *roleNode, left *vfs.Mem) {
	w.total.ends++
	w.logf("broker %d ends", n.id)
	n.disk, n.file, n.fenced = left, nil, false
	for i := range w.known {
		if w.known[i].node == n.id && !w.cut[n.id][i] && w.r.IntN(2) == 0 { // its connection is closed
			w.known[i] = roleEntry{node: -1}
		}
	}
}

func (w *roleWorld) start(n *roleNode) {
	n.file, n.fenced = &RoleFile{}, false
	if err := n.file.Load(n.disk, roleDir); err != nil {
		w.t.Errorf("broker %d: %v", n.id, err)
		return
	}
	st := n.file.Get()
	if st.Epoch < n.floor {
		w.t.Errorf("broker %d knew epoch %d durably, and knows %d now", n.id, n.floor, st.Epoch)
	}
	w.logf("broker %d starts: leads %v, epoch %d", n.id, n.leads(), st.Epoch)
	n.fenced = st.Fenced != nil && n.leads()
	if st.Pending != nil && !n.leads() { // the log is cut before anything is served
		if runs := w.change(n, func(s *RoleState) error { s.Cut(); return nil }); !runs {
			return
		}
	}
	if own := n.file.Get(); n.leads() && own.BeginEpoch(1) {
		if runs := w.change(n, func(s *RoleState) error { s.BeginEpoch(1); return nil }); !runs {
			return
		}
	}
	w.look(n)
	w.register(n)
}

// look is the look of a master for another one.
func (w *roleWorld) look(n *roleNode) {
	if n.file == nil || !n.serves() {
		return
	}
	var found []*RoleRival
	for i, e := range w.known {
		if e.node >= 0 && e.node != n.id && !w.cut[n.id][i] {
			found = append(found, &RoleRival{Epoch: e.epoch, Addr: w.nodes[e.node].addr()})
		}
	}
	own := n.file.Get()
	rival := own.Replaced(found)
	if rival == nil {
		return
	}
	w.total.fenced++
	w.logf("broker %d gives up: %+v", n.id, rival)
	n.fenced = true
	w.change(n, func(s *RoleState) error { s.GiveUp(*rival); return nil })
}

// register tells the name servers; the higher epoch stays.
func (w *roleWorld) register(n *roleNode) {
	if n.file == nil || !n.serves() {
		return
	}
	for i := range w.known {
		e := &w.known[i]
		if !w.cut[n.id][i] && (e.node < 0 || e.node == n.id || e.epoch <= n.file.Epoch()) {
			*e = roleEntry{n.id, n.file.Epoch()}
		}
	}
}

// tick is what a broker does from time to time.
func (w *roleWorld) tick(n *roleNode) {
	if n.file == nil {
		return
	}
	if n.leads() {
		w.register(n)
		w.look(n)
		return
	}
	for i, e := range w.known {
		if e.node < 0 || w.cut[n.id][i] || w.apart[n.id][e.node] {
			continue
		}
		m := w.nodes[e.node]
		if m.file == nil || !m.leads() {
			continue
		}
		was, st, own := n.file.Epoch(), m.file.Get(), n.file.Get()
		fenced := int64(0)
		if st.Fenced != nil {
			fenced = st.Fenced.Epoch
		}
		news, err := own.Learn(m.addr(), st.Epoch, fenced, "")
		if err == nil && st.Epoch < was {
			w.t.Errorf("broker %d, at epoch %d, follows a master of epoch %d", n.id, was, st.Epoch)
		}
		if news {
			w.change(n, func(s *RoleState) error { s.Epoch = max(s.Epoch, st.Epoch); return nil })
		}
		return
	}
}

// promote is mqx admin ha promote: of a slave whose master is fenced before, or cannot be reached. The operator sees the
// brokers that run, most of them.
func (w *roleWorld) promote(n *roleNode) {
	if n.file == nil || n.leads() || n.file.Get().Pending != nil {
		return
	}
	epoch := n.file.Epoch()
	var old *roleNode
	for _, m := range w.nodes {
		if m.file == nil || m != n && w.r.IntN(5) == 0 {
			continue
		}
		st := m.file.Get()
		epoch = max(epoch, st.Epoch)
		if st.Fenced != nil {
			epoch = max(epoch, st.Fenced.Epoch)
		}
		if m.serves() {
			old = m
		}
	}
	for _, e := range w.known {
		if e.node >= 0 {
			epoch = max(epoch, e.epoch)
		}
	}
	epoch = ballot.Next(epoch, int64(n.id))
	if old != nil {
		w.total.changes++
		old.fenced = true // for a while
	} else {
		w.total.promotions++
	}
	w.logf("broker %d is promoted with epoch %d", n.id, epoch)
	runs := w.change(n, func(s *RoleState) error { s.Role = "MASTER"; return s.Promote(epoch) })
	if runs {
		w.start(n)
	}
	if old == nil || old.file == nil {
		return
	}
	if !runs || w.r.IntN(4) == 0 { // the fence is lifted by its time
		old.fenced = old.file.Get().Fenced != nil
		return
	}
	if runs := w.change(old, func(s *RoleState) error { s.Role = "SLAVE"; s.Demote(epoch, nil); return nil }); runs {
		w.start(old)
	}
}

// demote is mqx admin ha demote of a master that has been replaced.
func (w *roleWorld) demote(n *roleNode) {
	if n.file == nil || !n.leads() || n.file.Get().Fenced == nil {
		return
	}
	for _, m := range w.nodes {
		if m == n || !m.serves() || w.apart[n.id][m.id] {
			continue
		}
		w.total.demotions++
		w.logf("broker %d is demoted", n.id)
		epoch := m.file.Epoch()
		runs := w.change(n, func(s *RoleState) error {
			s.Role = "SLAVE"
			s.Demote(epoch, &RolePending{To: 0})
			return nil
		})
		if runs {
			w.start(n)
		}
		return
	}
}
