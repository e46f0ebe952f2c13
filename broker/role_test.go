package broker

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/internal/vfs"
	"mqx/remoting"
	"mqx/store/ha"
)

// ha asks a broker for its part in its group.
func (r *running) askHA(act string, args, into any) (code int32, text string) {
	r.t.Helper()
	req := remoting.NewRequest(remoting.ReqMqxHA, nil)
	req.Fields.Set(remoting.FieldAct, act)
	if args != nil {
		req.Body, _ = json.Marshal(args)
	}
	resp, err := r.c.Call(r.t.Context(), r.addr, req)
	if err != nil {
		r.t.Fatal(err)
	}
	if resp.Code == remoting.RespSuccess && into != nil {
		if err := fastjson.Unmarshal(resp.Body, into); err != nil {
			r.t.Fatal(err)
		}
	}
	return resp.Code, resp.Remark
}

// reopened waits until Run has ended to be started anew, and starts the broker anew.
func (r *running) reopened(cfg Config) *running {
	r.t.Helper()
	select {
	case err := <-r.ended:
		if anew := (*ReopenError)(nil); !errors.As(err, &anew) || anew.Err != nil {
			r.t.Fatalf("Run ended with %v", err)
		}
	case <-time.After(time.Minute):
		r.t.Fatal("Run does not end")
	}
	_ = r.c.Close()
	r.cancel()
	r.cancel = nil
	return start(r.t, cfg)
}

func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal(what)
		}
	}
}

// A slave is promoted while its master is away, takes messages, and the old master comes back, is fenced, becomes its slave:
// what it had alone is cut and kept, with offsets that lay in it, and the logs are the same afterwards (r#323, r#3388, r#1094).
func TestPromoteAndDemote(t *testing.T) {
	ctx := context.Background()
	mc := testConfig(t.TempDir())
	m := start(t, mc)
	m.createTopic("T", 1)
	m.heartbeat("G", "CLUSTERING")
	for range 10 {
		m.send("T", 0, "", "both")
	}
	sc := testConfig(t.TempDir())
	sc.BrokerRole, sc.BrokerID = "SLAVE", 1
	s := start(t, sc)
	s.slave.learn(m.at().haAddr, m.addr)
	s.until("the slave does not come to the end", func() bool {
		return s.store.Dispatched() == m.store.LogEnd() && s.topics.Get("T") != nil
	})
	// The slave is cut off from what comes now.
	s.stop()
	at := m.store.LogEnd()
	for range 7 {
		m.send("T", 0, "", "alone")
	}
	m.commit("G", "T", 0, 16)
	s = start(t, sc)

	if code, text := s.askHA(remoting.HAActPromote, &remoting.HAPromote{Epoch: 0, Role: "ASYNC_MASTER"}, nil); code == remoting.RespSuccess || !strings.Contains(text, "epoch") {
		t.Errorf("a promotion without an epoch: %d %s", code, text)
	}
	if code, text := m.askHA(remoting.HAActPromote, &remoting.HAPromote{Epoch: 1, Role: "ASYNC_MASTER"}, nil); code == remoting.RespSuccess {
		t.Errorf("a master was promoted: %s", text)
	}
	if code, text := s.askHA(remoting.HAActPromote, &remoting.HAPromote{Epoch: 1, Role: "ASYNC_MASTER"}, nil); code != remoting.RespSuccess {
		t.Fatal(code, text)
	}
	s = s.reopened(sc) // the configuration still says SLAVE
	var st remoting.HAState
	s.askHA(remoting.HAActStatus, nil, &st)
	if st.Role != "ASYNC_MASTER" || st.BrokerID != 0 || st.Epoch != 1 || len(st.Epochs) != 1 || st.Epochs[0].Start != at || st.LogEnd != at {
		t.Fatalf("the promoted one: %+v", st)
	}
	for range 3 {
		s.send("T", 0, "", "after")
	}

	// The old master learns of it and takes nothing any more, also after a restart.
	m.giveUp(roleRival{Epoch: 1, Addr: s.addr})
	if resp := m.sendCode("T", 0); resp.Code != remoting.RespServiceNotAvailable || !strings.Contains(resp.Remark, s.addr) {
		t.Errorf("the old master: %d %s", resp.Code, resp.Remark)
	}
	m.stop()
	m = start(t, mc)
	if resp := m.sendCode("T", 0); resp.Code != remoting.RespServiceNotAvailable {
		t.Errorf("the old master, started again: %d %s", resp.Code, resp.Remark)
	}

	var common remoting.HACommon
	if code, text := m.askHA(remoting.HAActCompare, &remoting.HACompare{Master: s.addr, MasterHA: s.at().haAddr}, &common); code != remoting.RespSuccess {
		t.Fatal(code, text)
	}
	if common.Common != at || common.Messages != 7 || common.High != s.store.LogEnd() {
		t.Fatalf("compared: %+v, parted at %d", common, at)
	}
	if code, _ := m.askHA(remoting.HAActDemote, &remoting.HADemote{ID: 1, Cut: remoting.HACut{To: common.Common + 1}}, nil); code == remoting.RespSuccess {
		t.Error("a cut within a record was taken")
	}
	if code, text := m.askHA(remoting.HAActDemote, &remoting.HADemote{ID: 1, Epoch: 1, Cut: remoting.HACut{To: common.Common}}, nil); code != remoting.RespSuccess {
		t.Fatal(code, text)
	}
	m = m.reopened(mc)
	if off, _ := m.offsets.Committed("T", "G", 0); off != 10 {
		t.Errorf("an offset in what was cut is %d, want 10", off)
	}
	m.slave.learn(s.at().haAddr, s.addr)
	m.until("the old master does not follow", func() bool { return m.store.LogEnd() == s.store.LogEnd() && m.store.Dispatched() == m.store.LogEnd() })
	if m.store.MaxOffset("T", 0) != 13 {
		t.Errorf("the queue ends at %d, want 13", m.store.MaxOffset("T", 0))
	}
	var kept []remoting.HAKept
	m.askHA(remoting.HAActKept, nil, &kept)
	if len(kept) != 1 || kept[0].Start != at || kept[0].Bytes == 0 {
		t.Fatalf("kept: %+v", kept)
	}
	req := remoting.NewRequest(remoting.ReqMqxHA, nil)
	req.Fields.Set(remoting.FieldAct, remoting.HAActRead)
	req.Body, _ = json.Marshal(&remoting.HARead{Name: kept[0].Name, Len: 1 << 20})
	resp, err := m.c.Call(ctx, m.addr, req)
	if err != nil || int64(len(resp.Body)) != kept[0].Bytes || strings.Count(string(resp.Body), "alone") != 7 {
		t.Errorf("what was kept: %v, %d bytes", err, len(resp.Body))
	}
	req.Body, _ = json.Marshal(&remoting.HARead{Name: "../config/topics.json", Len: 10})
	if resp, err := m.c.Call(ctx, m.addr, req); err != nil || resp.Code == remoting.RespSuccess {
		t.Errorf("a file beside was read: %v", err)
	}

	// Taken anew from its first byte.
	if code, text := m.askHA(remoting.HAActResync, &remoting.HAResync{Cut: remoting.HACut{To: -1, Wipe: true}}, nil); code != remoting.RespSuccess {
		t.Fatal(code, text)
	}
	m = m.reopened(mc)
	m.slave.learn(s.at().haAddr, s.addr)
	m.until("the wiped slave does not follow", func() bool { return m.store.LogEnd() == s.store.LogEnd() && m.store.Dispatched() == m.store.LogEnd() })
	if st := m.slave.follower.State(); st.Phase != ha.PhaseFollowing {
		t.Errorf("%+v", st)
	}
	m.askHA(remoting.HAActKept, nil, &kept)
	if len(kept) < 2 {
		t.Errorf("kept: %+v", kept)
	}
}

// A role file that cannot be read stops the start: an epoch that is lost lets two masters in.
func TestRoleFileDamaged(t *testing.T) {
	cfg := testConfig(t.TempDir())
	dir := filepath.Join(cfg.Store.RootDir, "mqx")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, roleFileName), []byte("00000000\n{\"epoch\":3}"), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), roleFileName) {
		t.Errorf("the start: %v", err)
	}
}

func (r *running) sendCode(topic string, q int32) *remoting.Command {
	r.t.Helper()
	return r.call(remoting.ReqSendMessageV2, sendHeaderOf(topic, q, ""), []byte("x"))
}

// What consumers committed to a slave while the master was away is taken over by the master that comes back, never
// backwards, and nothing else is: what the slave has of the master may have been reset there since (r#1094).
func TestOffsetsComeBack(t *testing.T) {
	mc, sc := testConfig(t.TempDir()), testConfig(t.TempDir())
	m := start(t, mc)
	m.createTopic("T", 3)
	m.heartbeat("G", "CLUSTERING")
	for i := range 30 {
		m.send("T", int32(i%3), "", "x")
	}
	m.commit("G", "T", 0, 2)
	m.commit("G", "T", 1, 7)
	m.commit("G", "T", 2, 9)
	sc.BrokerRole, sc.BrokerID = "SLAVE", 1
	s := start(t, sc)
	s.slave.learn(m.at().haAddr, m.addr)
	at := func(r *running, q int32) int64 { off, _ := r.offsets.Committed("T", "G", q); return off }
	s.until("the tables do not come", func() bool {
		return at(s, 2) == 9 && at(s, 1) == 7 && s.store.Dispatched() == m.store.LogEnd()
	})
	m.commit("G", "T", 2, 1) // a reset, of which the slave is not told any more
	m.stop()
	s.offsets.Commit([]byte("T"), []byte("G"), 2, 9)
	s.commit("G", "T", 0, 5)
	s.commit("G", "T", 1, 3) // somebody reads again
	m = start(t, mc)
	if mqx, err := m.takeBackFrom(t.Context(), s.addr); err != nil || !mqx {
		t.Fatal(mqx, err)
	}
	if got := []int64{at(m, 0), at(m, 1), at(m, 2)}; got[0] != 5 || got[1] != 7 || got[2] != 1 {
		t.Errorf("offsets at the master that came back: %v, want [5 7 1]", got)
	}
	s.slave.learn(m.at().haAddr, m.addr)
	s.until("the slave tells for ever what its master has", func() bool {
		return len(s.offsets.own.copy()) == 0
	})
}

// What consumers committed to a slave while the master was away outlives a restart of the slave, in order and by a kill, and is
// brought to the master whether that comes back first or the slave; not what was set back at the master since, and not by
// another master that has taken its place.
func TestOwnCommitsAreDurable(t *testing.T) {
	mc, sc := testConfig(t.TempDir()), testConfig(t.TempDir())
	m := start(t, mc)
	m.createTopic("T", 3)
	m.heartbeat("G", "CLUSTERING")
	for i := range 30 {
		m.send("T", int32(i%3), "", "x")
	}
	for q := range int32(3) {
		m.commit("G", "T", q, 1)
	}
	sc.BrokerRole, sc.BrokerID, sc.FlushConsumerOffset = "SLAVE", 1, 10*time.Millisecond
	s := start(t, sc)
	s.slave.learn(m.at().haAddr, m.addr)
	at := func(r *running, q int32) int64 { off, _ := r.offsets.Committed("T", "G", q); return off }
	s.until("the tables do not come", func() bool { return at(s, 2) == 1 && s.store.Dispatched() == m.store.LogEnd() })
	m.stop()
	s.commit("G", "T", 0, 5)
	if resp := s.pullCommit("T", "G", 1, 1, 6); resp.Code != remoting.RespSuccess { // as clients do to whom it is the master
		t.Fatal(resp)
	}
	s.commit("G", "T", 2, 7)
	// What a kill leaves: the file as it is without a stop.
	var saved offsetsFile
	s.until("they are not in the file", func() bool {
		saved = offsetsFile{}
		data, err := vfs.ReadFile(vfs.OS, s.offsets.path)
		return err == nil && fastjson.Unmarshal(data, &saved) == nil && len(saved.CommittedHere["T@G"]) == 3
	})
	if got := saved.OffsetTable["T@G"]; got[0] != 5 || got[1] != 6 || got[2] != 7 {
		t.Errorf("the file of a slave that is killed now has %v", got)
	}
	for range 2 {
		s.stop()
		s = start(t, sc)
	}
	if told := s.haOffsets(nil).OffsetTable["T@G"]; len(told) != 3 || told[0] != 5 || told[1] != 6 || told[2] != 7 {
		t.Errorf("the slave tells %v after two restarts", told)
	}
	// The master comes back and cannot ask; somebody sets one back there; then the slave comes.
	m = start(t, mc)
	m.offsets.Commit([]byte("T"), []byte("G"), 2, 0)
	s.slave.learn(m.at().haAddr, m.addr)
	s.until("the master does not get them", func() bool { return at(m, 0) == 5 && at(m, 1) == 6 })
	if at(m, 2) != 0 {
		t.Errorf("an offset that was set back is %d", at(m, 2))
	}
	s.until("it is told for ever, or not set back at the slave", func() bool { return len(s.offsets.own.copy()) == 0 && at(s, 2) == 0 })
	// Another master: what lies behind its log is not kept.
	m.stop()
	s.offsets.Commit([]byte("T"), []byte("G"), 0, 5)
	s.commit("G", "T", 0, 9)
	s.offsets.Commit([]byte("T"), []byte("G"), 0, 99)
	s.stop()
	s = start(t, sc)
	m = start(t, mc)
	if err := m.role.Change(func(st *roleState) error { st.Epoch = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	s.slave.learn(m.at().haAddr, m.addr)
	s.until("an offset of another master's log stays", func() bool { return at(s, 0) <= 10 && s.tablesSeen() })
}

// pullCommit pulls and commits with it.
func (r *running) pullCommit(topic, group string, q int32, from, commit int64) *remoting.Command {
	r.t.Helper()
	h := pullHeaderOf(group, topic, q, from)
	h.SysFlag |= pullCommit
	h.CommitOffset = commit
	return r.call(remoting.ReqPullMessage, h, nil)
}

// A commit that comes while the slave settles with its master is either told or still its own afterwards.
func TestOwnCommitsWhileTheySettle(t *testing.T) {
	o := newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", time.Now, 1, quiet)
	k := ownCommit{offsetKey{"T", "G"}, 0}
	var wg sync.WaitGroup
	defer wg.Wait()
	at := atomic.Int64{}
	stop := make(chan struct{})
	defer close(stop)
	wg.Go(func() {
		for off := int64(1); ; off++ {
			select {
			case <-stop:
				return
			default:
			}
			o.Commit([]byte("T"), []byte("G"), 0, off)
			o.noteOwn("T", "G", 0, 1)
			at.Store(off)
		}
	})
	for range 20_000 {
		told := at.Load()
		o.settleOwn(map[string]map[int32]int64{k.String(): {0: told}})
		noted := at.Load() // and what was noted before the next look is own, or told
		if have, _ := o.Committed("T", "G", 0); noted > told && have > told {
			if _, own := o.own.copy()[k]; !own {
				t.Fatalf("%d is committed, the master was told %d, and nothing is own", have, told)
			}
		}
	}
}

// What was removed at the master is removed at a slave that comes back with it, so that it is not told again for ever and does not
// come to life with a promotion.
func TestRemovedAtTheMasterIsSettled(t *testing.T) {
	b := start(t, testConfig(t.TempDir()))
	b.createTopic("T", 1)
	b.offsets.Commit([]byte("T"), []byte("G"), 0, 0)
	before := b.now().UnixMilli() - 1
	b.offsets.RemoveQueue("T", "G", 0)
	told := &remoting.HAOffsets{
		OffsetTable: map[string]map[int32]int64{"T@G": {0: 0}, "GONE@G": {3: 5}},
		CommittedAt: map[string]map[int32]int64{"T@G": {0: before}, "GONE@G": {3: before}},
	}
	stands := b.mergeBack("slave", told)
	want := map[string]map[int32]int64{"T@G": {0: removedAtMaster}, "GONE@G": {3: removedAtMaster}}
	if !maps.EqualFunc(stands.OffsetTable, want, maps.Equal) {
		t.Errorf("the master answers %v, want %v", stands.OffsetTable, want)
	}
	if at, ok := b.offsets.Committed("T", "G", 0); ok {
		t.Errorf("the master has %d again", at)
	}
}

// A slave that became the master forgets what was committed to it as a slave, in its file too.
func TestOwnCommitsEndWithThePromotion(t *testing.T) {
	o := newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", fixedNow, 1, quiet)
	o.Commit([]byte("T"), []byte("G"), 0, 1)
	o.noteOwn("T", "G", 0, 3)
	if err := o.Save(); err != nil {
		t.Fatal(err)
	}
	load := func() *offsetTable {
		n := newOffsetTable(o.fsys, o.path, fixedNow, 1, quiet)
		if err := n.Load(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := load()
	if len(n.own.copy()) != 1 || n.ownEpoch.Load() != 3 {
		t.Errorf("%v of epoch %d", n.own.copy(), n.ownEpoch.Load())
	}
	if err := n.forgetOwn(); err != nil {
		t.Fatal(err)
	}
	if got := load().own.copy(); len(got) != 0 {
		t.Errorf("still %v", got)
	}
}

// A slave that has known a higher epoch does not follow the master that was replaced, and says why; it learns the epoch of
// the one it follows.
func TestSlaveKnowsTheEpoch(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	m.createTopic("T", 1)
	m.send("T", 0, "", "x")
	sc := testConfig(t.TempDir())
	sc.BrokerRole, sc.BrokerID = "SLAVE", 1
	s := start(t, sc)
	set := func(r *running, epoch int64) {
		t.Helper()
		if err := r.role.Change(func(st *roleState) error { st.Epoch = epoch; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	set(s, 2)
	s.slave.learn(m.at().haAddr, m.addr)
	s.until("a slave follows a master of an older epoch", func() bool {
		st := s.slave.follower.State()
		return st.Phase != ha.PhaseFollowing && st.Err != nil && strings.Contains(st.Err.Error(), "taken its place")
	})
	if s.store.LogEnd() != 0 {
		t.Error("it has taken bytes")
	}
	set(m, 3)
	s.until("the epoch is not learned", func() bool { return s.role.Epoch() == 3 && s.store.LogEnd() == m.store.LogEnd() })
	if got := m.haInfo().FencedEpoch; got != 0 {
		t.Errorf("nobody has taken its place, and it tells the epoch %d", got)
	}
	// A fence for a while keeps no slave away; a rival's does.
	m.fenceFor(time.Hour)
	if err := s.slave.learnEpoch(t.Context(), m.addr); err != nil {
		t.Errorf("a master that is fenced for a while: %v", err)
	}
	m.giveUp(roleRival{Epoch: 4, Addr: "127.0.0.1:1"})
	if err := s.slave.learnEpoch(t.Context(), m.addr); err == nil || !strings.Contains(err.Error(), "is none any more") || m.haInfo().FencedEpoch != 4 {
		t.Errorf("a master that was replaced: %v, %+v", err, m.haInfo())
	}
}

// Of two promotions at a time with one epoch one is taken.
func TestPromotionsAtATime(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID = "SLAVE", 1
	s := start(t, cfg)
	const at = 4
	s.configMu.Lock() // what looks at the epoch outside the change has looked when it stands here
	done := make(chan error, at)
	for range at {
		go func() { done <- s.haPromote(&remoting.HAPromote{Epoch: 5, Role: "ASYNC_MASTER"}, "test") }()
	}
	buf := make([]byte, 1<<20)
	s.until("the promotions do not come to the change", func() bool {
		return strings.Count(string(buf[:runtime.Stack(buf, true)]), ").takeRole(") == at
	})
	s.configMu.Unlock()
	taken := 0
	for range at {
		if err := <-done; err == nil {
			taken++
		} else if refused := (*refusedError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Text, "epoch") {
			t.Errorf("refused with %v", err)
		}
	}
	if st := s.role.Get(); taken != 1 || len(st.Epochs) != 1 {
		t.Errorf("%d promotions were taken, %+v", taken, st.Epochs)
	}
	s = s.reopened(cfg)
	if s.slave != nil {
		t.Error("it is no master")
	}
}

// What is to become of the log of a slave is not done to that of a master, which a configuration file that somebody has
// changed since may make of it: the start stops and says what to look at.
func TestPendingCutOfAMaster(t *testing.T) {
	for name, pending := range map[string]*rolePending{
		"wipe": {To: -1, Wipe: true, Discard: true, Name: "wiped"},
		"cut":  {To: 0},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			r := start(t, cfg)
			r.createTopic("T", 1)
			r.send("T", 0, "", "x")
			end := r.store.LogEnd()
			if err := r.role.Change(func(s *roleState) error { s.Pending = pending; return nil }); err != nil {
				t.Fatal(err)
			}
			r.stop()
			b, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				select {
				case <-b.Ready():
					cancel() // it has started, which it must not
				case <-ctx.Done():
				}
			}()
			if err := b.Run(ctx); err == nil || !strings.Contains(err.Error(), roleFileName) {
				t.Errorf("the start: %v", err)
			}
			cancel()
			if err := r.role.Change(func(s *roleState) error { s.Pending = nil; return nil }); err != nil {
				t.Fatal(err)
			}
			if r = start(t, cfg); r.store.LogEnd() != end {
				t.Errorf("the log ends at %d, want %d", r.store.LogEnd(), end)
			}
		})
	}
}
