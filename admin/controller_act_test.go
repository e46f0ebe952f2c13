package admin

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"mqx/remoting"
	"mqx/remoting/server"
)

// fakeController keeps the replicas of broker a as Apache's does.
type fakeController struct {
	mu    sync.Mutex
	state remoting.ReplicasInfo
	deaf  bool // answers, and does nothing
}

func startController(t *testing.T) (*fakeController, string) {
	t.Helper()
	f := &fakeController{state: remoting.ReplicasInfo{
		MasterBrokerID: 1, MasterAddress: "10.0.0.1:1",
		InSyncReplicas:    []remoting.ReplicaIdentity{{BrokerID: 1, BrokerAddress: "10.0.0.1:1", Alive: true}, {BrokerID: 2, BrokerAddress: "10.0.0.2:1", Alive: true}},
		NotInSyncReplicas: []remoting.ReplicaIdentity{{BrokerID: 3, BrokerAddress: "10.0.0.3:1"}, {BrokerID: 4, BrokerAddress: "10.0.0.4:1", Alive: true}},
	}}
	s := startFake(t, map[int32]func(*server.Request){
		remoting.ReqControllerGetSyncStateData: f.get, remoting.ReqControllerElectMaster: f.elect, remoting.ReqCleanBrokerData: f.clean,
	})
	return f, s.addr
}

func (f *fakeController) get(r *server.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	info := remoting.BrokerReplicasInfo{ReplicasInfoTable: map[string]remoting.ReplicasInfo{}}
	if err := json.Unmarshal(r.Body, &names); err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	if len(f.state.InSyncReplicas) > 0 && slices.Contains(names, "a") {
		info.ReplicasInfoTable["a"] = f.state
	}
	resp := remoting.NewResponse(&r.Command, remoting.RespSuccess, "")
	resp.Body, _ = json.Marshal(info)
	r.ReplyWith(resp)
}

func (f *fakeController) elect(r *server.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, _, _ := r.Fields.Int64("brokerId")
	resp := remoting.NewResponse(&r.Command, remoting.RespSuccess, "")
	resp.Fields.Set("masterAddress", "10.0.0.2:1")
	resp.Fields.Set("masterEpoch", "2")
	resp.Fields.Set("syncStateSetEpoch", "7")
	resp.Body = []byte(`{"brokerMemberGroup":{"brokerAddrs":{2:"10.0.0.2:1",1:"10.0.0.1:1"},"brokerName":"a","cluster":"c"},"syncStateSet":[2]}`)
	if !f.deaf {
		f.state.MasterBrokerID = id
	}
	r.ReplyWith(resp)
}

func (f *fakeController) setDeaf(deaf bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaf = deaf
}

// die takes all replicas down: the controller has no master for the name then.
func (f *fakeController) die() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.MasterBrokerID = 0
	for _, list := range [][]remoting.ReplicaIdentity{f.state.InSyncReplicas, f.state.NotInSyncReplicas} {
		for i := range list {
			list[i].Alive = false
		}
	}
}

func (f *fakeController) inSync() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.state.InSyncReplicas)
}

func (f *fakeController) clean(r *server.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fields := r.Fields
	ids := strings.Split(fields.String("brokerControllerIdsToClean"), ";")
	gone := func(i remoting.ReplicaIdentity) bool {
		return fields.String("isCleanLivingBroker") == "true" || ids[0] == "" || slices.Contains(ids, strconv.FormatInt(i.BrokerID, 10))
	}
	if !f.deaf {
		f.state.InSyncReplicas = slices.DeleteFunc(f.state.InSyncReplicas, gone)
		f.state.NotInSyncReplicas = slices.DeleteFunc(f.state.NotInSyncReplicas, gone)
	}
	r.Reply(remoting.RespSuccess, "")
}

// An election shows who is in sync, is refused where it cannot be, is nothing where it is so already, and is read back.
func TestElectMaster(t *testing.T) {
	c, _, _ := offsetCluster(t)
	f, addr := startController(t)
	_, err := c.PlanElectMaster(t.Context(), addr, "c", "a", 3)
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Why != "it is not alive" {
		t.Errorf("one that is not alive: %v", err)
	}
	_, err = c.PlanElectMaster(t.Context(), addr, "c", "a", 9)
	if none, ok := errors.AsType[*NotFoundError](err); !ok || !slices.Equal(none.Known, []string{"1", "2", "3", "4"}) {
		t.Errorf("an id that the controller does not have: %v", err)
	}
	_, err = c.PlanElectMaster(t.Context(), addr, "c", "nosuch", 2)
	if _, ok := errors.AsType[*NotFoundError](err); !ok {
		t.Errorf("a name that the controller does not have: %v", err)
	}
	p, err := c.PlanElectMaster(t.Context(), addr, "c", "a", 1)
	if err != nil || !Idle(p) {
		t.Fatalf("the master: %v", err)
	}
	p, err = c.PlanElectMaster(t.Context(), addr, "c", "a", 4)
	if err != nil || !slices.ContainsFunc(p.Notes(), func(n Note) bool { return n.Word == "mind" }) {
		t.Errorf("one that is not in sync: %v", err)
	}
	p, err = c.PlanElectMaster(t.Context(), addr, "c", "a", 2)
	if err != nil || Idle(p) || len(p.Notes()) != 4 || p.Notes()[0].Text != "id 1 at 10.0.0.1:1: alive, in sync, master" {
		t.Fatalf("%v, %v", err, p)
	}
	f.setDeaf(true)
	if done, err := p.Apply(t.Context(), c); err != nil || len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error(), "has broker id 1 as master") {
		t.Errorf("not elected: %+v, %v", done, err)
	}
	f.setDeaf(false)
	done, err := p.Apply(t.Context(), c)
	if err != nil || len(done.Errors) != 0 || len(done.Steps) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if want := "master 10.0.0.2:1, epoch 2, epoch of the sync state set 7, replica 1 10.0.0.1:1, replica 2 10.0.0.2:1"; done.Steps[0].After != want {
		t.Errorf("%v, want %s", done.Steps[0].After, want)
	}
}

// What a controller forgets is listed and read back; what is alive is refused, and so are ids with which it would forget all.
func TestCleanBroker(t *testing.T) {
	c, _, _ := offsetCluster(t)
	f, addr := startController(t)
	for ids, why := range map[string]string{"": "broker id 1 as master", "2": "is alive", "3;4": "id 4 is alive"} {
		_, err := c.PlanCleanBroker(t.Context(), addr, "c", "a", ids, false)
		if refused, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(refused.Why, why) {
			t.Errorf("ids %q: %v", ids, err)
		}
	}
	if _, err := c.PlanCleanBroker(t.Context(), addr, "c", "a", "3", true); err == nil {
		t.Error("an id and living: all would go")
	}
	p, err := c.PlanCleanBroker(t.Context(), addr, "c", "a", "3", false)
	if err != nil || len(p.Notes()) != 1 || p.Notes()[0] != (Note{"forgets", "id 3 at 10.0.0.3:1: not alive, not in sync"}) {
		t.Fatalf("%v, %v", err, p)
	}
	f.setDeaf(true)
	if done, err := p.Apply(t.Context(), c); err != nil || len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error(), "still has broker id 3") {
		t.Errorf("not forgotten: %+v, %v", done, err)
	}
	f.setDeaf(false)
	if done, err := p.Apply(t.Context(), c); err != nil || len(done.Errors) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	p, err = c.PlanCleanBroker(t.Context(), addr, "", "a", "", true)
	if err != nil || len(p.Notes()) != 3 {
		t.Fatalf("%v, %v", err, p)
	}
	f.die()
	whole, err := c.PlanCleanBroker(t.Context(), addr, "c", "a", "", false)
	if err != nil || len(whole.Notes()) != 3 {
		t.Fatalf("a name without a master: %v, %v", err, whole)
	}
	f.setDeaf(true)
	if done, err := whole.Apply(t.Context(), c); err != nil || len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error(), "still has broker id 1") {
		t.Errorf("the name is not forgotten: %+v, %v", done, err)
	}
	f.setDeaf(false)
	if done, err := p.Apply(t.Context(), c); err != nil || len(done.Errors) != 0 || f.inSync() != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}
