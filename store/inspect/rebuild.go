package inspect

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"mqx/internal/vfs"
	"mqx/store"
)

// RebuildPart is a part of a store that can be built again on its own.
type RebuildPart string

// The parts.
const (
	RebuildQueue   RebuildPart = "queue"
	RebuildIndex   RebuildPart = "index"
	RebuildTopics  RebuildPart = "topics"
	RebuildOffsets RebuildPart = "offsets"
)

// ErrNoQueue says that a store knows nothing of a queue.
var ErrNoQueue = errors.New("neither the log nor the queues know it")

// Rebuild builds one part again from the rest, whether or not anything is wrong with it. names are topic and queue for
// RebuildQueue, fewer for all of them. Agree is asked as by Repair. Errors as those of Repair, and ErrNoQueue.
func Rebuild(ctx context.Context, root string, part RebuildPart, names []string, o RepairOptions) (err error) {
	if o.Open.FS == nil {
		o.Open.FS = vfs.OS
	}
	o.Apply.FS, o.Apply.Clock = o.Open.FS, o.Open.Clock
	if err := probe(root, o.Open); err != nil {
		return err
	}
	lock, err := store.LockDir(o.Open.FS, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	o.Open.Owned = true
	if err := resume(ctx, root, o); err != nil {
		return err
	}
	p, r, err := planPart(ctx, root, part, names, o)
	if err != nil || len(p.Steps) == 0 {
		return err
	}
	if o.Agree != nil {
		if err := o.Agree(r, p); err != nil {
			return err
		}
	}
	return Apply(ctx, p, o.Apply)
}

// PlanRebuild is the plan of Rebuild for a directory as it is. It takes no lock and writes nothing, also beside a running
// broker; what an interrupted repair has still to do is none of it. Errors as those of Rebuild.
func PlanRebuild(ctx context.Context, root string, part RebuildPart, names []string, o RepairOptions) (*RepairPlan, error) {
	p, _, err := planPart(ctx, root, part, names, o)
	return p, err
}

// planPart makes the plan for one part. The rest of the store is looked at as by Verify: what generation a queue is of,
// which delays its levels have, which topics are gone.
func planPart(ctx context.Context, root string, part RebuildPart, names []string, o RepairOptions) (p *RepairPlan, r *Report, err error) {
	d, err := Open(root, o.Open)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if r, err = Verify(ctx, d, o.Verify); err != nil {
		return nil, nil, err
	}
	b := newPlanner(r.v, o.Plan)
	switch part {
	case RebuildQueue:
		if err := b.chooseQueues(names); err != nil {
			return nil, nil, fmt.Errorf("cannot rebuild queue: %w", err)
		}
		b.queueStep()
	case RebuildIndex:
		b.index = true
		b.indexStep()
	case RebuildTopics:
		file := nameConfig + "/topics.json"
		b.add(&Step{Kind: StepQuarantine, File: file, What: "move " + file + " and its backup to mqx/quarantine", Destructive: b.topicsKnown()})
		b.add(&Step{Kind: StepTopics, File: file, What: "make topics.json from the queues and the log"})
	case RebuildOffsets:
		for _, f := range r.Findings {
			if f.Kind == FindOffsetBeyond || f.File == nameConfig+"/consumerOffset.json" || f.File == nameConfig+"/delayOffset.json" {
				b.finding(f)
			}
		}
	}
	b.planIsOver()
	return b.plan, r, nil
}

// topicsKnown reports whether topics.json or its backup can be read: what they say of permissions, attributes and queues
// without a message follows from nothing else.
func (b *planner) topicsKnown() bool {
	const name = "topics.json"
	j, err := b.v.d.JSON(name)
	if err != nil {
		return false
	}
	return j.Main != nil && configErr(name, j.Main) == nil || j.Backup != nil && configErr(name, j.Backup) == nil
}

func (b *planner) chooseQueues(names []string) error {
	if len(names) == 0 {
		b.all = true
		return nil
	}
	id := int64(-1)
	if len(names) > 1 {
		var err error
		if id, err = strconv.ParseInt(names[1], 10, 32); err != nil || id < 0 {
			return fmt.Errorf("queue %q is no number", names[1])
		}
	}
	for _, q := range b.v.queues.mu.byTopic[names[0]] {
		if id < 0 || int64(q.key.ID) == id {
			b.queues[q.key] = true
		}
	}
	if len(b.queues) == 0 {
		return fmt.Errorf("topic %q: %w", names[0], ErrNoQueue)
	}
	return nil
}
