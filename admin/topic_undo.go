package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNoUndo says that a change cannot be taken back.
var ErrNoUndo = errors.New("the messages of a deleted topic do not come back")

// canUndo reports whether undoTopic can take back what was done.
func canUndo(done []Change) error {
	for _, ch := range done {
		if ch.Action == ActionDelete {
			return ErrNoUndo
		}
	}
	return nil
}

// undoTopic plans to take back changes of a topic that Apply has done: what was created
// is deleted, what was updated becomes what it was.
func undoTopic(ctx context.Context, c *Client, topic string, undo []byte) ([]Plan, error) {
	saved, err := readSaved[[]Change](kindTopic, undo)
	if err != nil {
		return nil, err
	}
	return c.undoTopicChanges(ctx, topic, *saved)
}

// undoTopicChanges plans to take back changes of a topic.
func (c *Client) undoTopicChanges(ctx context.Context, topic string, done []Change) ([]Plan, error) {
	if err := canUndo(done); err != nil {
		return nil, fmt.Errorf("cannot undo the change of topic %q: %w", topic, err)
	}
	all, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	var brokers []Broker
	var changes []Change
	var gone []string
	for _, ch := range done {
		i := slices.IndexFunc(all, func(b Broker) bool { return b.Name == ch.Broker && b.Addr == ch.Addr && b.ID == 0 })
		switch {
		case ch.Action == ActionNone || ch.Broker == "":
		case i < 0:
			gone = append(gone, fmt.Sprintf("broker %s (%s) is no longer a master of the cluster", ch.Broker, ch.Addr))
		default:
			brokers, changes = append(brokers, all[i]), append(changes, ch)
		}
	}
	now, errs := c.readTopic(ctx, topic, brokers)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	for i, b := range brokers {
		if !sameState(now[b], changes[i].After) {
			gone = append(gone, fmt.Sprintf("the topic on broker %s was made %s, is %s", b.Name, changes[i].After, now[b]))
		}
	}
	if len(gone) > 0 {
		return nil, &ChangedError{Kind: kindTopic, Object: topic, Differences: gone}
	}
	return c.undoPlans(ctx, topic, brokers, changes)
}

func (c *Client) undoPlans(ctx context.Context, topic string, brokers []Broker, changes []Change) ([]Plan, error) {
	restore := &TopicPlan{Action: actionRestore, Topic: topic}
	var created []Broker
	for i, ch := range changes {
		if ch.Before == nil {
			created = append(created, brokers[i])
			continue
		}
		restore.brokers = append(restore.brokers, brokers[i])
		restore.Changes = append(restore.Changes, Change{Broker: ch.Broker, Addr: ch.Addr, Action: ActionUpdate, Before: ch.After, After: ch.Before})
	}
	var plans []Plan
	if len(restore.Changes) > 0 {
		restore.Cluster = clustersOf(restore.brokers)
		plans = append(plans, restore)
	}
	if len(created) > 0 {
		p, err := c.planDelete(ctx, Target{}, topic, created, nil)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}
