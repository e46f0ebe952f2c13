package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// savedSeed is a SeedPlan as it is written to a file.
type savedSeed struct {
	Spec     SeedSpec    `json:"spec"`
	Clusters []string    `json:"clusters"`
	Steps    []savedStep `json:"steps"`
	Missing  []string    `json:"missing,omitempty"`
}

// savedStep is a step in words: what a plan made anew is compared with.
type savedStep struct {
	Broker string `json:"broker"`
	Addr   string `json:"addr"`
	Part   string `json:"part"`
	Action string `json:"action"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Saved is the plan in the form that can be written down.
func (p *SeedPlan) Saved() any { return p.saved() }

func (p *SeedPlan) saved() savedSeed {
	s := savedSeed{Spec: p.spec, Clusters: p.clusters, Missing: missingNames(p.errs)}
	for _, step := range p.Steps() {
		s.Steps = append(s.Steps, savedStep{step.Broker, step.Addr, step.Part, step.Action, stateText(step.Before), stateText(step.After)})
	}
	return s
}

func stateText(v any) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprint(v)
}

// replanSeed plans anew and compares the steps. One that is done already, or that is
// gone since what it made is there, is no difference.
func replanSeed(ctx context.Context, c *Client, saved []byte) (Plan, error) {
	s, err := readSaved[savedSeed](kindSeed, saved)
	if err != nil {
		return nil, err
	}
	p, err := c.PlanSeed(ctx, s.Spec)
	if err != nil {
		return nil, err
	}
	if Idle(p) && len(p.errs) == 0 {
		return p, nil
	}
	now := p.saved()
	var diffs []string
	for _, n := range now.Steps {
		if n.Action != ActionNone && !slices.Contains(s.Steps, n) {
			diffs = append(diffs, fmt.Sprintf("%s on broker %s would become %s, which was not part of it", n.Part, n.Broker, n.After))
		}
	}
	if !slices.Equal(s.Missing, now.Missing) {
		diffs = append(diffs, fmt.Sprintf("brokers without an answer were %v, are %v", s.Missing, now.Missing))
	}
	if len(diffs) > 0 {
		return nil, &ChangedError{Kind: kindSeed, Object: p.Object(), Differences: diffs}
	}
	return p, nil
}

// undoSeed deletes the topics that a seed has made. Groups stay: they hold nothing.
func undoSeed(ctx context.Context, c *Client, _ string, undo []byte) ([]Plan, error) {
	made, err := readSaved[map[string][]Change](kindSeed, undo)
	if err != nil {
		return nil, err
	}
	var out []Plan
	for _, topic := range slices.Sorted(maps.Keys(*made)) {
		plans, err := c.undoTopicChanges(ctx, topic, (*made)[topic])
		if err != nil {
			return nil, err
		}
		out = append(out, plans...)
	}
	return out, nil
}
