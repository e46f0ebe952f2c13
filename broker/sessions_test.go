package broker

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqx/remoting"
)

// fakePeer is a connection that remembers what was sent to it.
type fakePeer struct {
	id     uint64
	sent   []*remoting.Command
	closed string
}

func (p *fakePeer) ID() uint64 { return p.id }
func (p *fakePeer) Remote() netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(1000+p.id))
}
func (p *fakePeer) Language() remoting.Language    { return remoting.LanguageJava }
func (p *fakePeer) Version() int32                 { return 513 }
func (p *fakePeer) Send(c *remoting.Command) error { p.sent = append(p.sent, c); return nil }
func (p *fakePeer) Close(reason string)            { p.closed = reason }

func subs(version int64, topics ...string) []remoting.SubscriptionData {
	var out []remoting.SubscriptionData
	for _, t := range topics {
		name, expr, _ := strings.Cut(t, "=")
		if expr == "" {
			expr = "*"
		}
		out = append(out, remoting.SubscriptionData{Topic: name, SubString: expr, SubVersion: version, ExpressionType: "TAG"})
	}
	return out
}

func consumer(group string, s []remoting.SubscriptionData) *remoting.ConsumerData {
	return &remoting.ConsumerData{
		GroupName: group, ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering,
		ConsumeFromWhere: remoting.ConsumeFromLastOffset, SubscriptionDataSet: s,
	}
}

func subText(t *testing.T, c *consumerTable, group string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for topic, s := range c.Subscriptions(group) {
		out[topic] = s.SubString
	}
	return out
}

func TestConsumerRegistration(t *testing.T) {
	now := fixedNow()
	a, b := &fakePeer{id: 1}, &fakePeer{id: 2}
	c := newConsumerTable()
	steps := []struct {
		name    string
		peer    *fakePeer
		id      string
		subs    []remoting.SubscriptionData
		keep    bool
		changed bool
		same    bool // the generation does not move
		want    map[string]string
	}{
		{"first client", a, "a", subs(1, "T", "U"), false, true, false, map[string]string{"T": "*", "U": "*"}},
		{"the same again", a, "a", subs(1, "T", "U"), false, false, true, map[string]string{"T": "*", "U": "*"}},
		{"higher version of the same expression", a, "a", subs(2, "T", "U"), false, false, false, map[string]string{"T": "*", "U": "*"}},
		{"another client", b, "b", subs(2, "T", "U"), false, true, false, map[string]string{"T": "*", "U": "*"}},
		{"other tags, higher version", a, "a", subs(3, "T=x", "U"), false, false, false, map[string]string{"T": "x", "U": "*"}},
		{"other tags of another client, lower version", b, "b", subs(2, "T=y", "U"), false, false, true, map[string]string{"T": "x", "U": "*"}},
		{"other tags of the same client, its clock set back (N101)", a, "a", subs(1, "T=z", "U"), false, false, false, map[string]string{"T": "z", "U": "*"}},
		{"a topic goes", b, "b", subs(1, "T"), false, true, false, map[string]string{"T": "z"}},
		{"and comes back with the other client (N043)", a, "a", subs(1, "T=z", "U"), false, true, false, map[string]string{"T": "z", "U": "*"}},
		{"without subscriptions", b, "b", nil, true, false, true, map[string]string{"T": "z", "U": "*"}},
		{"another client id on a connection", b, "b2", subs(1, "T", "U"), false, true, false, map[string]string{"T": "z", "U": "*"}},
	}
	gen := uint64(0)
	for _, s := range steps {
		r := c.Register(registration{data: consumer("G", s.subs), peer: s.peer, id: s.id, keepSubs: s.keep}, now)
		if r.changed != s.changed {
			t.Errorf("%s: changed %v", s.name, r.changed)
		}
		if (r.gen == gen) != s.same {
			t.Errorf("%s: generation %d after %d", s.name, r.gen, gen)
		}
		gen = r.gen
		if d := cmp.Diff(s.want, subText(t, c, "G")); d != "" {
			t.Errorf("%s: %s", s.name, d)
		}
	}
	if d := cmp.Diff([]string{"a", "b2"}, c.ClientIDs([]byte("G"))); d != "" {
		t.Error(d)
	}
	conn := c.Connection("G")
	if len(conn.ConnectionSet) != 2 || conn.ConnectionSet[0] != (remoting.Connection{ClientAddr: "10.0.0.1:1001", ClientID: "a", Language: "JAVA", Version: 513}) ||
		conn.ConsumeType != remoting.ConsumePassively || conn.MessageModel != remoting.Clustering {
		t.Errorf("%+v", conn)
	}
	if c.Client("G", "a") == nil || c.Client("G", "nobody") != nil || c.Connection("other") != nil {
		t.Error("lookups are wrong")
	}
	if sub, model, online := c.Subscription([]byte("G"), []byte("T")); sub == nil || sub.SubString != "z" || model != remoting.Clustering || !online {
		t.Error("subscription of T")
	}
	if sub, _, online := c.Subscription([]byte("G"), []byte("nope")); sub != nil || !online {
		t.Error("subscription of another topic")
	}
	if d := cmp.Diff([]string{"G"}, c.GroupsOf("U")); d != "" {
		t.Error(d)
	}
}

func TestConsumersLeave(t *testing.T) {
	now := fixedNow()
	a, b := &fakePeer{id: 1}, &fakePeer{id: 2}
	c := newConsumerTable()
	for _, g := range []string{"G", "H"} {
		c.Register(registration{data: consumer(g, subs(1, "T")), peer: a, id: "a"}, now)
	}
	c.Register(registration{data: consumer("G", subs(1, "T")), peer: b, id: "b"}, now)
	l, ok := c.Unregister("G", 1)
	if !ok || l.group != "G" || l.model != remoting.Clustering || len(l.others) != 1 || l.others[0].id != "b" {
		t.Errorf("%+v %v", l, ok)
	}
	if _, ok := c.Unregister("G", 1); ok {
		t.Error("left twice")
	}
	gone := c.Closed(1)
	if len(gone) != 1 || gone[0].group != "H" || len(gone[0].others) != 0 {
		t.Errorf("%+v", gone)
	}
	if c.Len() != 1 || c.Subscriptions("H") != nil {
		t.Error("a group without clients stays")
	}
	if e := c.Expire(now); len(e) != 0 {
		t.Errorf("expired %v", e)
	}
	e := c.Expire(now.Add(121 * time.Second).Add(-120 * time.Second))
	if len(e) != 1 || e[0].client.id != "b" || e[0].group != "G" || c.Len() != 0 {
		t.Errorf("expired %+v", e)
	}
}

func TestFingerprints(t *testing.T) {
	c := newConsumerTable()
	for i, step := range []struct {
		fp      int32
		changed bool
	}{{7, true}, {7, false}, {8, true}, {7, true}, {7, false}} {
		if got := c.Fingerprint("G", step.fp); got != step.changed {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

func TestProducers(t *testing.T) {
	now := fixedNow()
	a, b := &fakePeer{id: 1}, &fakePeer{id: 2}
	p := newProducerTable()
	if _, added := p.Register("G", a, "a", now); !added {
		t.Error("a is new")
	}
	if _, added := p.Register("G", a, "a", now.Add(time.Second)); added {
		t.Error("a is not new")
	}
	p.Register("G", b, "b", now)
	p.Register("H", b, "b", now)
	all := p.All()
	if len(all.Data["G"]) != 2 || all.Data["G"][0] != (remoting.ProducerInfo{
		ClientID: "a", Language: "JAVA", Version: 513, RemoteIP: "/10.0.0.1:1001", LastUpdateTimestamp: now.Add(time.Second).UnixMilli(),
	}) {
		t.Errorf("%+v", all)
	}
	if len(p.Connections("G")) != 2 || p.Connections("nobody") != nil {
		t.Error("connections")
	}
	if e := p.Expire(now.Add(500 * time.Millisecond)); len(e) != 2 {
		t.Errorf("expired %v", e)
	}
	if !p.Unregister("G", 1) || p.Unregister("G", 1) || p.Len() != 0 {
		t.Error("unregister")
	}
	p.Register("G", a, "a", now)
	p.Closed(1)
	if p.Len() != 0 {
		t.Error("a closed connection stays")
	}
}
