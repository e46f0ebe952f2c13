package nameserver

import "time"

// departure is a replica that leaves, by its own word, by silence or with its connection.
type departure struct {
	replica
	name string
	id   int64
}

// depart removes replicas, all in one pass, and returns what their partners are to be told.
func (t *table) depart(ds []departure, rl rules) []*minIDNotice {
	var notices []*minIDNotice
	for _, d := range ds {
		if l := t.live[d.replica]; l != nil {
			d.name, d.id = l.name, l.id // what it registered as counts
		}
		t.forget(d.replica)
		b := t.brokers[d.name]
		if b == nil || t.livesElsewhere(d) {
			continue
		}
		wasMin := len(b.addrs) > 0 && d.id == minID(b.addrs)
		removed := false
		for id, a := range b.addrs {
			if a == d.addr {
				delete(b.addrs, id)
				removed = true
			}
		}
		if len(b.addrs) == 0 {
			t.removeBroker(b)
			continue
		}
		if removed {
			t.touchBroker(b)
			t.wipeIfMasterless(b)
		}
		if wasMin && rl.notifyMinID {
			notices = append(notices, newMinIDNotice(b.addrs, d.addr, ""))
		}
	}
	return notices
}

// livesElsewhere reports whether the same address is alive as a replica of the same
// name in another cluster: the process moved.
func (t *table) livesElsewhere(d departure) bool {
	for cluster := range t.clusters {
		if l := t.live[replica{cluster, d.addr}]; l != nil && l.name == d.name {
			return true
		}
	}
	return false
}

// removeBroker removes a broker name with all its queues.
func (t *table) removeBroker(b *brokerEntry) {
	for name := range b.topics {
		t.removeQueues(name, b.name)
	}
	delete(t.brokers, b.name)
	for c := range t.clusters { // it may have had replicas in several
		t.leaveCluster(b.name, c)
	}
}

// wipeIfMasterless takes the write permission from a broker that allows an acting
// master and has lost its own.
func (t *table) wipeIfMasterless(b *brokerEntry) {
	if b.actingMaster && minID(b.addrs) != masterID {
		t.changeWritePerm(b.name, false)
	}
}

// expired are the replicas whose time is over, with the connections they came by.
func (t *table) expired(now time.Time) (ds []departure, conns []uint64) {
	for r, l := range t.live {
		if l.seen.Add(l.timeout).Before(now) {
			ds = append(ds, departure{replica: r, name: l.name, id: l.id})
			conns = append(conns, l.conn)
		}
	}
	return ds, conns
}

// ofConns are the replicas that registered over the given connections last.
func (t *table) ofConns(conns []uint64) []departure {
	var ds []departure
	for _, c := range conns {
		for r := range t.conns[c] {
			l := t.live[r]
			ds = append(ds, departure{replica: r, name: l.name, id: l.id})
		}
	}
	return ds
}
