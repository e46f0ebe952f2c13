package move

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// LeaseTime is how long a queue lock lasts that nobody renews, in Apache's broker and in mqx's.
const LeaseTime = 60 * time.Second

// refresh is how often the whole state is written again although nothing changed:
// retention must not delete the last record of a plan that waits.
const refresh = 12 * time.Hour

// Request asks the owner of a plan for something.
type Request string

// The requests.
const (
	Pause    Request = "pause"
	Resume   Request = "resume"   // also accepts offsets that went back
	RollBack Request = "rollback" // go back
	Finish   Request = "finish"   // remove what was moved from the source
	Ignore   Request = "ignore"   // do not wait for a group; Argument is its name
)

// Entry is a record of the journal: a state, or a request to the owner.
type Entry struct {
	Offset   int64
	Plan     string
	By       string // who wrote it
	At       time.Time
	Request  Request
	Argument string
	State    *State // nil for a request
}

// Journal is an append-only log of one plan that all machines share, with a lease on it.
type Journal interface {
	// Renew takes the lease or keeps it. false: somebody else has it.
	Renew(ctx context.Context) (bool, error)
	// Read returns the entries of the plan from an offset on. A journal that ends before that
	// offset was begun anew: all of it is read.
	Read(ctx context.Context, from int64) (entries []Entry, span Span, err error)
	// Append adds an entry at the end and sets its offset.
	Append(ctx context.Context, e *Entry) error
}

// Span is the first offset that a journal still has and the one behind its end.
type Span struct{ First, Next int64 }

// Cluster is what a plan is carried out on.
type Cluster interface {
	// Observe looks at everything that the plan concerns. What does not answer is in
	// Observation.Failed; an error ends the run.
	Observe(ctx context.Context, st *State) (*Observation, error)
	// Do carries one command out and reads it back. A *ChangedError says that what was to be
	// changed is no longer what the plan believes.
	Do(ctx context.Context, st *State, c *Command) error
}

// ChangedError says that a command was refused: what it changes is neither as it was nor
// as it should become.
type ChangedError struct {
	Command Command
	Found   string
}

// Error says what was found.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("cannot %s: it is now %s", e.Command.String(), e.Found)
}

// OwnedError says that another operator runs the plan.
type OwnedError struct {
	Plan string
	By   string // "" when it is not known
}

// Error names the plan and its owner.
func (e *OwnedError) Error() string {
	by := e.By
	if by == "" {
		by = "somebody else"
	}
	return fmt.Sprintf("plan %s is run by %s", e.Plan, by)
}

// ErrNoPlan says that the journal holds no state of a plan.
var ErrNoPlan = errors.New("the journal has no such plan")

// Runner carries a plan out, step by step. It is used by one goroutine.
type Runner struct {
	Cluster Cluster
	Journal Journal
	Plan    string
	Owner   string // who this is, unique among all runs
	Now     func() time.Time

	st         State
	loaded     bool
	next       int64 // journal offset that was read up to
	at         int64 // journal offset of the newest state; somebody may have deleted it
	recorded   time.Time
	doubtful   bool // the journal did not answer: its broker may have forgotten the lease
	quietUntil time.Time
	last       *Observation
}

// State is what the runner knows of the plan.
func (r *Runner) State() *State { return &r.st }

// Observation is the last one that was made, nil before the first.
func (r *Runner) Observation() *Observation { return r.last }

// Begin writes a new plan into the journal. The lease must be free.
func (r *Runner) Begin(ctx context.Context, st *State) error {
	if err := r.own(ctx); err != nil {
		return err
	}
	_, span, err := r.Journal.Read(ctx, 0)
	if err != nil {
		return err
	}
	r.st, r.next, r.loaded = st.Clone(), span.Next, true
	return r.record(ctx, r.st.Clone())
}

// Load finds the newest state of the plan and applies the requests behind it.
func (r *Runner) Load(ctx context.Context) error {
	entries, span, err := r.Journal.Read(ctx, 0)
	if err != nil {
		return err
	}
	found := Latest(entries)
	if found == nil {
		return ErrNoPlan
	}
	r.st, r.next, r.loaded = *found, span.Next, true
	for i := range entries {
		if entries[i].State != nil {
			r.at = entries[i].Offset
		}
	}
	r.recorded = r.Now()
	return nil
}

// Latest is the newest state among the entries of a plan with the requests that it does
// not know of yet; nil when there is no state.
func Latest(entries []Entry) *State {
	var st *State
	for i := range entries {
		if s := entries[i].State; s != nil && (st == nil || s.Seq >= st.Seq) {
			c := s.Clone()
			st = &c
		}
	}
	if st == nil {
		return nil
	}
	for i := range entries {
		if e := &entries[i]; e.State == nil && e.Offset >= st.Rests {
			st.apply(e)
		}
	}
	return st
}

// apply folds a request into a state.
func (s *State) apply(e *Entry) {
	switch e.Request {
	case Pause:
		s.Paused = true
	case Resume:
		s.Accept()
	case RollBack:
		if s.CanRollBack() == nil && !s.Phase.Back() {
			s.Rollback = true
		}
		s.Accept()
	case Finish: // what was left pending would go with the source
		s.Spec.Policy.Remove, s.Spec.Policy.LeavePending = true, false
	case Ignore:
		s.Spec.Policy.Ignore = append(s.Spec.Policy.Ignore, e.Argument)
	}
}

// own takes or renews the lease. After the journal's broker did not answer it may have
// forgotten who holds it: nothing is done for the time of a lease then.
func (r *Runner) own(ctx context.Context) error {
	ok, err := r.Journal.Renew(ctx)
	switch {
	case err != nil:
		r.doubtful = true
		return err
	case !ok:
		return &OwnedError{Plan: r.Plan}
	case r.doubtful:
		r.doubtful, r.quietUntil = false, r.Now().Add(LeaseTime)
	}
	return nil
}

// catchUp reads what was written since. Another owner's state ends this run.
func (r *Runner) catchUp(ctx context.Context) (news bool, err error) {
	entries, span, err := r.Journal.Read(ctx, r.next)
	if err != nil {
		r.doubtful = true
		return false, err
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.State == nil:
			r.st.apply(e)
			news = true
		case e.By != r.Owner:
			return false, &OwnedError{Plan: r.Plan, By: e.By}
		case e.State.Seq > r.st.Seq: // an append of ours that was not answered
			r.st, r.at, news = e.State.Clone(), e.Offset, true
		}
	}
	if r.at < span.First || span.Next < r.next {
		r.recorded = time.Time{} // the record is gone: it is written again with the next step
	}
	r.next = span.Next
	return news, nil
}

// record appends a state; only then it counts.
func (r *Runner) record(ctx context.Context, st State) error {
	st.Seq, st.Owner, st.Rests = r.st.Seq+1, r.Owner, r.next
	e := &Entry{Plan: r.Plan, By: r.Owner, At: r.Now(), State: &st}
	if err := r.Journal.Append(ctx, e); err != nil {
		r.doubtful = true
		return err
	}
	r.st, r.at, r.recorded = st, e.Offset, r.Now()
	return nil
}

// retry is how long a run waits after the cluster or the journal did not answer.
const retry = time.Second

// Step does one step: lease, journal, a look at the cluster, commands, record. An
// *OwnedError ends the run; other failures are in Waiting and are tried again.
func (r *Runner) Step(ctx context.Context) (Decision, error) {
	if !r.loaded {
		return Decision{}, ErrNoPlan
	}
	if d, ok, err := r.ready(ctx); err != nil || !ok {
		return d, err
	}
	ob, err := r.Cluster.Observe(ctx, &r.st)
	if err != nil {
		return Decision{}, err
	}
	r.last = ob
	d := Next(&r.st, ob, r.Now())
	if len(d.Commands) > 0 || d.Record {
		// The look took time: the lease and the end of the journal are read again right
		// before the step that rests on them.
		if again, ok, err := r.ready(ctx); err != nil || !ok {
			return again, err
		}
	}
	for i := range d.Commands {
		if err := r.Cluster.Do(ctx, &r.st, &d.Commands[i]); err != nil {
			return r.failed(ctx, err)
		}
	}
	if d.Record || r.Now().Sub(r.recorded) > refresh {
		if err := r.record(ctx, d.Next); err != nil {
			return r.failed(ctx, err)
		}
		return d, nil
	}
	r.st = d.Next
	return d, nil
}

// ready reports whether a step may be taken now.
func (r *Runner) ready(ctx context.Context) (Decision, bool, error) {
	if err := r.own(ctx); err != nil {
		d, err := r.failed(ctx, err)
		return d, false, err
	}
	news, err := r.catchUp(ctx)
	if err != nil {
		d, err := r.failed(ctx, err)
		return d, false, err
	}
	if left := r.quietUntil.Sub(r.Now()); left > 0 {
		return Decision{
			Next: r.st.Clone(), Wait: min(left, retry),
			Waiting: []string{fmt.Sprintf("the broker of the journal was away: %s more, until no lease of before can last", left.Round(time.Second))},
		}, false, nil
	}
	if news { // begin the step again with what is new
		d := Decision{Next: r.st.Clone()}
		return d, false, nil
	}
	return Decision{}, true, nil
}

// failed says what did not work and lets it be tried again, unless the run has ended.
func (r *Runner) failed(ctx context.Context, err error) (Decision, error) {
	var owned *OwnedError
	if errors.As(err, &owned) || ctx.Err() != nil {
		return Decision{}, err
	}
	return Decision{Next: r.st.Clone(), Wait: retry, Waiting: []string{err.Error()}}, nil
}
