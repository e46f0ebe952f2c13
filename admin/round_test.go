package admin

import (
	"errors"
	"testing"

	"mqx/remoting"
)

// A read does not wait twice for who keeps silent, and one client that hangs makes no broker silent.
func TestRoundRemembersWhoIsSilent(t *testing.T) {
	ctx, r := WithRound(t.Context())
	if roundOf(ctx) != r || roundOf(t.Context()) != nil {
		t.Fatal("the round is not that of its context")
	}
	late := errors.New("late")
	r.note("a:1", remoting.ReqGetAllTopicConfig, true, nil, false)
	r.note("b:1", remoting.ReqGetAllTopicConfig, true, late, true)
	r.note("c:1", remoting.ReqGetConsumerRunningInfo, true, late, true)
	r.note("d:1", remoting.ReqGetAllTopicConfig, true, errors.New("refused"), false)
	for addr, want := range map[string]error{"a:1": nil, "b:1": late, "c:1": nil, "d:1": nil} {
		if got := r.silence(addr); !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
		if got := r.Answered(addr); got != (addr == "a:1") {
			t.Errorf("%s answered: %v", addr, got)
		}
	}
	r.note("ns:1", remoting.ReqGetBrokerClusterInfo, false, nil, false)
	if r.Answered("ns:1") || !r.AnsweredBesides([]TargetError{{Addr: "b:1"}}) || r.AnsweredBesides([]TargetError{{Addr: "a:1"}}) {
		t.Errorf("answered: %v", r.answered)
	}
	var none *Round
	none.note("a:1", 0, true, nil, false)
	if err := none.silence("a:1"); err != nil {
		t.Error(err)
	}
}
