package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"mqx/internal/userfile"
)

// CopyCounts count messages; Read is the sum of Sent, Others, Already, Refused and Failed.
type CopyCounts struct { //nolint:recvcheck // Add changes it, and it is printed as a value
	Read    int64 `json:"read"`
	Sent    int64 `json:"sent"`
	Others  int64 `json:"others"`  // not wanted
	Already int64 `json:"already"` // in the target since before
	Refused int64 `json:"refused"` // that can never be sent, as with an empty body
	Failed  int64 `json:"failed"`  // that nobody knows of whether they were stored
	Unsure  int64 `json:"unsure"`  // of those sent: stored without the durability that was asked for
}

// Add adds other counts.
func (c *CopyCounts) Add(o CopyCounts) {
	c.Read += o.Read
	c.Sent += o.Sent
	c.Others += o.Others
	c.Already += o.Already
	c.Refused += o.Refused
	c.Failed += o.Failed
	c.Unsure += o.Unsure
}

// String is the counts that are not 0.
func (c CopyCounts) String() string {
	s := fmt.Sprintf("%d read, %d sent", c.Read, c.Sent)
	for _, n := range []struct {
		n    int64
		text string
	}{{c.Others, "others"}, {c.Already, "there already"}, {c.Refused, "refused"}, {c.Failed, "failed"}, {c.Unsure, "without the durability asked for"}} {
		if n.n > 0 {
			s += fmt.Sprintf(", %d %s", n.n, n.text)
		}
	}
	return s
}

// copyState is how far a copy has come, by source queue, in a file that a later run goes on from.
type copyState struct {
	Spec        CopySpec              `json:"spec"`
	Lanes       map[string]*laneState `json:"queues"`
	FirstStored int64                 `json:"firstStored,omitempty"` // ms, by the target's clock, of the first message that was sent
	Done        bool                  `json:"done,omitempty"`        // nothing is left of it; only of a plan, whose state stays
}

// counts are those of all queues.
func (s *copyState) counts() (sum CopyCounts) {
	for _, l := range s.Lanes {
		sum.Add(l.Counts)
	}
	return sum
}

// laneState is one source queue.
type laneState struct {
	Next   int64      `json:"next"` // the position to go on at
	Counts CopyCounts `json:"counts"`
}

// maxCopyState bounds a state file.
const maxCopyState = 64 << 20

// loadCopyState reads a state file; none is nil.
func loadCopyState(path string) (*copyState, error) {
	if path == "" {
		return nil, nil
	}
	data, err := userfile.Read(path, maxCopyState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	s := &copyState{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	if s.Lanes == nil {
		s.Lanes = map[string]*laneState{}
	}
	return s, nil
}

// copyProgress keeps the state of a running copy. Safe to share.
type copyProgress struct {
	path string

	mu struct {
		sync.Mutex
		state   copyState
		saved   time.Time
		saveErr error
	}
}

// saveEvery is the time between two writes of the state.
const saveEvery = time.Second

func newCopyProgress(path string, from *copyState, spec CopySpec) *copyProgress {
	p := &copyProgress{path: path}
	p.mu.state = copyState{Spec: spec, Lanes: map[string]*laneState{}}
	if from != nil {
		p.mu.state.FirstStored = from.FirstStored
		for name, l := range from.Lanes { // the plan goes by what it was
			one := *l
			p.mu.state.Lanes[name] = &one
		}
	}
	p.mu.saved = time.Now()
	return p
}

// note counts one message of a lane, which is done with.
func (p *copyProgress) note(lane string, next int64, c CopyCounts) CopyCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.mu.state.Lanes[lane]
	if l == nil {
		l = &laneState{}
		p.mu.state.Lanes[lane] = l
	}
	l.Counts.Add(c)
	if c.Failed == 0 {
		l.Next = next
	}
	if p.path != "" && time.Since(p.mu.saved) >= saveEvery {
		p.save()
	}
	return p.total()
}

func (p *copyProgress) total() CopyCounts { return p.mu.state.counts() }

// save writes the state; p.mu is held.
func (p *copyProgress) save() {
	p.mu.saved = time.Now()
	data, err := json.Marshal(&p.mu.state)
	if err == nil {
		err = userfile.Write(p.path, data)
	}
	if err != nil && p.mu.saveErr == nil {
		p.mu.saveErr = fmt.Errorf("cannot write state %q: %w", p.path, err)
	}
}

// finish writes the state of a copy that is to be gone on with, or removes that of one that is whole: of a plan it stays, and
// says that nothing is left.
func (p *copyProgress) finish(whole bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path == "" {
		return nil
	}
	if !whole && len(p.mu.state.Lanes) == 0 {
		return nil // nothing has been done
	}
	if !whole {
		for _, l := range p.mu.state.Lanes { // what is tried again is counted again
			l.Counts.Read -= l.Counts.Failed
			l.Counts.Failed = 0
		}
		p.save()
		return p.mu.saveErr
	}
	if p.mu.state.Spec.plan {
		p.mu.state.Done = true
		p.save()
		return p.mu.saveErr
	}
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove state %q: %w", p.path, err)
	}
	return p.mu.saveErr
}

// lane is the counts of a lane.
func (p *copyProgress) lane(name string) CopyCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.mu.state.Lanes[name]; l != nil {
		return l.Counts
	}
	return CopyCounts{}
}
