package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Plan is a change, planned and not yet done. Planning reads, Apply writes and reads
// back; what a plan found it keeps, and the caller shows it before it asks.
type Plan interface {
	// Kind names the form of Saved and of Applied.Undo: one of planKinds.
	Kind() string
	// Object is what is changed: the name that is asked for.
	Object() string
	// Title says what is done, as in "create topic ORDERS".
	Title() string
	Clusters() []string
	// Steps are what happens to each target, those with ActionNone too.
	Steps() []Step
	// Notes are what else there is to know before the answer.
	Notes() []Note
	// Missing are targets that could not be planned for, and so will not be changed.
	Missing() []TargetError
	// Destroys reports whether something is lost that no undo brings back.
	Destroys() bool
	// Saved is the plan in the JSON form that Client.Replan takes. That of a plan which
	// has secrets (see Secrets) lacks them, and Replan refuses it.
	Saved() any
	// Apply does the plan and reads it back. A target that fails does not keep the
	// others from being changed; it is in Applied.Errors, as is a state read back that
	// is not what was planned. An error means that nothing was done.
	Apply(ctx context.Context, c *Client) (*Applied, error)
}

// Actions of a Step.
const (
	ActionCreate = "create"
	ActionUpdate = "update"
	ActionNone   = "none" // it is so already
	ActionDelete = "delete"
)

// Step is what a plan does to one target, or has done.
type Step struct {
	Broker string // broker name; empty for a name server
	Addr   string
	Part   string // of the object, as in "queue 3" or a key; empty for all of it
	Action string
	// Before and After are the states: nil where there is nothing, else a number, a
	// string, or a value that has a JSON form and a String method.
	Before, After any
	// Text is the step in words; empty for "before -> after".
	Text    string
	Warning string
}

// Note is a remark of a plan.
type Note struct {
	Word string // of at most 8 letters, as in "unread"
	Text string
}

// Applied is what a plan did.
type Applied struct {
	Steps  []Step // done, with the states read back
	Errors []TargetError
	// Undo is what Client.Undo takes to make the change undone, with a JSON form.
	Undo any
	// Lasting says what of the change Undo leaves as it is, and why; nil when nothing.
	Lasting error
	// Final is why the change cannot be undone, nil when it can.
	Final error
}

// planKind is how plans of a kind come back from their written forms.
type planKind struct {
	replan func(ctx context.Context, c *Client, saved []byte) (Plan, error)
	undo   func(ctx context.Context, c *Client, object string, undo []byte) ([]Plan, error)
}

// planKinds are the kinds of plans. A function, since the kinds call what reads it.
func planKinds() map[string]planKind {
	return map[string]planKind{
		kindTopic: {replanTopic, undoTopic},
		kindSeed:  {replanSeed, undoSeed},

		kindGroup: groupCells.planKind(),
		kindMode:  modeCells.planKind(),

		kindBrokerConfig:     brokerConfigCells.planKind(),
		kindNameServerConfig: nameServerConfigCells.planKind(),
		kindControllerConfig: controllerConfigCells.planKind(),

		kindKV:       kvCells.planKind(),
		kindWritable: writableCells.planKind(),
		kindCold:     coldCells.planKind(),
		kindUser:     userCells.planKind(),
		kindPolicy:   policyCells.planKind(),
		kindTopics:   topicCells.planKind(),
		kindAct:      {replanAct, nil},

		kindOffset:        {replanOffset, undoOffset},
		kindOffsetRemoval: {replanOffsetRemoval, undoOffsetRemoval},
		kindCopy:          {replanCopy, nil},
		kindRole:          {replanRole, nil},
		kindStatic:        {replanStatic, undoStatic},
	}
}

// PlanTakesLong reports whether the work of a written plan is bounded by nothing but what there is to do: messages that
// are sent, or copied before offsets move, and roles, for which the brokers are waited for.
func PlanTakesLong(kind string, saved []byte) bool {
	switch kind {
	case kindCopy, kindRole:
		return true
	case kindOffset:
		p, err := readSaved[savedOffsetPlan](kind, saved)
		return err == nil && p.Spec.KeepSkipped
	}
	return false
}

// PlanKinds are the names of the kinds of plans, sorted.
func PlanKinds() []string {
	var out []string
	for name := range planKinds() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// UnknownPlanError says that this version knows no plans of a kind, or cannot take
// them back.
type UnknownPlanError struct{ Kind string }

// Error names the kind.
func (e *UnknownPlanError) Error() string {
	return fmt.Sprintf("plans of kind %q are not known here; known: %s", e.Kind, strings.Join(PlanKinds(), ", "))
}

// Replan plans anew what a saved plan asks for and compares: a *ChangedError says that
// what it rests on is another now. Messages that came since are no difference. Where
// everything is already as the plan wanted it, the plan returned does nothing.
func (c *Client) Replan(ctx context.Context, kind string, saved []byte) (Plan, error) {
	k, ok := planKinds()[kind]
	if !ok || k.replan == nil {
		return nil, &UnknownPlanError{kind}
	}
	return k.replan(ctx, c, saved)
}

// Undo plans to take back what a plan of this kind has done to an object; undo is its
// Applied.Undo. A *ChangedError says that somebody has changed it since. The plans are
// to be applied in their order.
func (c *Client) Undo(ctx context.Context, kind, object string, undo []byte) ([]Plan, error) {
	k, ok := planKinds()[kind]
	if !ok || k.undo == nil {
		return nil, &UnknownPlanError{kind}
	}
	return k.undo(ctx, c, object, undo)
}

// Secrets are the parts of a plan of which a state, the one found or the one wanted, is a
// secret: written down nowhere, so that such a plan is not to be saved. Sorted.
func Secrets(p Plan) []string {
	if s, ok := p.(interface{ secrets() []string }); ok {
		return s.secrets()
	}
	return nil
}

// SecretPlanError says that a saved plan lacks parts that are secrets.
type SecretPlanError struct {
	Object string
	Parts  []string
}

// Error names the parts.
func (e *SecretPlanError) Error() string {
	return fmt.Sprintf("cannot do the saved plan for %s: it lacks %s, a secret, which is written down nowhere", e.Object, strings.Join(e.Parts, ", "))
}

// Idle reports whether a plan has nothing to do.
func Idle(p Plan) bool {
	return !slices.ContainsFunc(p.Steps(), func(s Step) bool { return s.Action != ActionNone })
}

// ChangedError says that what a plan or an undo rests on is no longer so.
type ChangedError struct {
	Kind        string // of the object: topic, group, …
	Object      string
	Differences []string
}

// Error names the differences.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("what the plan for %s %s rests on has changed: %s", e.Kind, e.Object, strings.Join(e.Differences, "; "))
}

// readSaved reads the written form of a plan or of an undo.
func readSaved[T any](kind string, data []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("cannot read the written form of a change of kind %q: %w", kind, err)
	}
	return v, nil
}
