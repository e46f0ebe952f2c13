package admin

import (
	"maps"
	"slices"
	"testing"
)

// taken is a plan that takes one thing of a kind away.
func taken[T any](k *cellKind[T]) Plan {
	return &cellPlan[T]{k: k, cells: []cell[T]{{part: "x", was: new(T)}}}
}

// made is a plan that makes one thing of a kind.
func made[T any](k *cellKind[T]) Plan {
	return &cellPlan[T]{k: k, cells: []cell[T]{{part: "x", is: new(T)}}}
}

// What takes something away that does not come back as a whole asks for the name, whatever kind of plan it is; what can
// be taken back does not.
func TestWhatDestroysSaysSo(t *testing.T) {
	before := int64(7)
	unseenKinds := planKinds()
	removal := &OffsetRemoval{brokers: []brokerRemoval{{goes: []offsetRecord{{Before: &before}}}}}
	for kind, plans := range map[string]struct{ destroys, keeps []Plan }{
		kindTopic:            {[]Plan{&TopicPlan{Action: ActionDelete}, &purgePlan{&TopicPlan{Action: ActionDelete}, "g"}}, []Plan{&TopicPlan{Action: ActionCreate}, &TopicPlan{Action: actionRestore}}},
		kindGroup:            {[]Plan{taken(groupCells)}, []Plan{made(groupCells)}},
		kindMode:             {[]Plan{taken(modeCells)}, []Plan{made(modeCells)}},
		kindBrokerConfig:     {[]Plan{taken(brokerConfigCells), &cellPlan[ConfigValue]{k: brokerConfigCells, notes: []Note{{wordLost, "g"}}}}, []Plan{made(brokerConfigCells)}},
		kindNameServerConfig: {[]Plan{taken(nameServerConfigCells)}, []Plan{made(nameServerConfigCells)}},
		kindControllerConfig: {[]Plan{taken(controllerConfigCells)}, []Plan{made(controllerConfigCells)}},
		kindKV:               {[]Plan{taken(kvCells)}, []Plan{made(kvCells)}},
		kindWritable:         {[]Plan{taken(writableCells)}, []Plan{made(writableCells)}},
		kindCold:             {[]Plan{taken(coldCells)}, []Plan{made(coldCells)}},
		kindUser:             {[]Plan{taken(userCells)}, []Plan{made(userCells)}},
		kindPolicy:           {[]Plan{taken(policyCells)}, []Plan{made(policyCells)}},
		kindTopics:           {[]Plan{taken(topicCells)}, []Plan{made(topicCells)}},
		kindAct:              {nil, nil}, // below
		kindOffset:           {nil, []Plan{&OffsetPlan{}}},
		kindOffsetRemoval:    {[]Plan{removal}, []Plan{&OffsetRemoval{}}},
		kindCopy:             {nil, []Plan{&CopyPlan{}}},
		kindRole:             {[]Plan{&rolePlan{destroys: true}}, []Plan{&rolePlan{}}},
		kindStatic:           {nil, []Plan{&StaticPlan{}}},
		kindSeed:             {nil, []Plan{&SeedPlan{}}},
	} {
		if !slices.Contains(PlanKinds(), kind) {
			t.Errorf("there is no kind %q", kind)
		}
		delete(unseenKinds, kind)
		for _, p := range plans.destroys {
			if !p.Destroys() {
				t.Errorf("%s: %T is asked for without the name", kind, p)
			}
		}
		for _, p := range plans.keeps {
			if p.Destroys() {
				t.Errorf("%s: %T asks for the name, and destroys nothing", kind, p)
			}
		}
	}
	if len(unseenKinds) > 0 {
		t.Errorf("kinds that are not looked at: %v", slices.Sorted(maps.Keys(unseenKinds)))
	}
	destroy := []string{actCleanBroker, actPurgeExpired, actPurgeQueues, actPurgeUnused, actRemoveBroker}
	for name, k := range acts() {
		if (&actPlan{k: k}).Destroys() != slices.Contains(destroy, name) {
			t.Errorf("%s: destroys %v", name, k.destroys)
		}
	}
}
