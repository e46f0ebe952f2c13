package timer

import (
	"fmt"
	"maps"

	"mqx/internal/fastjson"
	"mqx/internal/jsonfile"
	"mqx/internal/vfs"
)

// Metrics is the content of config/timermetrics: how many messages of each topic wait.
type Metrics struct {
	Version struct {
		Counter      int64 `json:"counter"`
		StateVersion int64 `json:"stateVersion"`
		Timestamp    int64 `json:"timestamp"`
	} `json:"dataVersion"`
	Topics map[string]Metric `json:"timingCount"`
}

// Metric is the number of waiting messages of one topic.
type Metric struct {
	Count     int64 `json:"count"`
	TimeStamp int64 `json:"timeStamp"` // ms of the last change
}

// Text is the file's text.
func (m *Metrics) Text() ([]byte, error) {
	b, err := fastjson.MarshalStandard(m)
	if err != nil {
		return nil, fmt.Errorf("cannot write timer metrics: %w", err)
	}
	return b, nil
}

// ParseMetrics reads the file's text.
func ParseMetrics(b []byte) (Metrics, error) {
	var m Metrics
	if err := fastjson.Unmarshal(b, &m); err != nil {
		return Metrics{}, fmt.Errorf("cannot read timer metrics: %w", err)
	}
	return m, nil
}

// metrics counts. A cancellation counts one less from its arrival until its slot is due, whether or not it finds its
// message: what is told to others is never below zero.
type metrics struct {
	m       Metrics
	version int64           // of the content, for whoever saves it
	gone    map[string]bool // deleted topics that messages wait for
}

func (x *metrics) add(topic string, by, nowMs int64) {
	if topic == "" || by == 0 {
		return
	}
	if x.m.Topics == nil {
		x.m.Topics = map[string]Metric{}
	}
	e := x.m.Topics[topic]
	e.Count, e.TimeStamp = e.Count+by, nowMs
	x.m.Topics[topic] = e
	if e.Count == 0 && x.gone[topic] {
		delete(x.m.Topics, topic)
		delete(x.gone, topic)
	}
	x.m.Version.Counter++
	x.m.Version.Timestamp = nowMs
	x.version++
}

// set replaces the counts by others. A topic that nothing waits for keeps its place with 0, as after its last delivery, unless it
// is deleted.
func (x *metrics) set(counts map[string]int64, nowMs int64) {
	for topic, e := range x.m.Topics {
		x.add(topic, counts[topic]-e.Count, nowMs)
		delete(counts, topic)
	}
	for topic, n := range counts {
		x.add(topic, n, nowMs)
	}
}

// sum is the count of all topics together.
func (x *metrics) sum() (n int64) {
	for _, e := range x.m.Topics {
		n += e.Count
	}
	return n
}

// shown is a copy to be told to others.
func (x *metrics) shown() Metrics {
	m := x.m
	m.Topics = maps.Clone(m.Topics)
	if m.Topics == nil {
		m.Topics = map[string]Metric{}
	}
	for t, e := range m.Topics {
		if e.Count < 0 {
			e.Count = 0
			m.Topics[t] = e
		}
	}
	return m
}

func (x *metrics) load(fsys vfs.FS, root string) error {
	_, err := jsonfile.Load(fsys, metricsPath(root), func(b []byte) error {
		m, err := ParseMetrics(b)
		if err == nil {
			x.m = m
		}
		return err
	})
	return err
}

// Metrics is how many messages of each topic wait.
func (t *Timer) Metrics() Metrics {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.metrics.shown()
}

// ForgetTopic takes a deleted topic out of the counts, when the last message that waits for it has been delivered.
func (t *Timer) ForgetTopic(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.metrics.m.Topics[topic]
	switch {
	case !ok:
	case e.Count == 0:
		delete(t.metrics.m.Topics, topic)
		t.metrics.version++
		t.changed = true
	default:
		if t.metrics.gone == nil {
			t.metrics.gone = map[string]bool{}
		}
		t.metrics.gone[topic] = true
	}
}

// Spread is how many messages wait, by the time left: of bounds (seconds, ascending) each, those not in one before it.
func (t *Timer) Spread(bounds []int64, nowMs int64) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.cfg.Rules
	counts := make([]int64, len(bounds))
	from := r.Tick(nowMs)
	base := from
	for i, b := range bounds {
		to := base + b*1000/r.PrecisionMs
		counts[i] = max(0, t.wheel.NumIn(from, to))
		from = to
	}
	return counts
}
