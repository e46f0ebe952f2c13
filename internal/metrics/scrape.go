// Package metrics serves what a process counts in Prometheus' text form: the one door
// to its client library.
//
// Nothing is kept here. A Source is asked at each scrape and writes its series from
// counters of its own; a series vanishes with what it describes.
package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"mqx/internal/meter"
	"mqx/internal/sorted"
)

// Source writes its series at a scrape. It is called from one goroutine at a time and
// must not wait for anything.
type Source interface{ Metrics(s *Scrape) }

// SourceFunc is a function as a Source.
type SourceFunc func(s *Scrape)

// Metrics calls f.
func (f SourceFunc) Metrics(s *Scrape) { f(s) }

// MaxSeries bounds the series of one name (metricsOtelCardinalityLimit of Apache):
// those above it are added up in one with the label otel_metric_overflow.
const MaxSeries = 50_000

// Labels are the labels of a series, sorted by name.
type Labels []*dto.LabelPair

// Scrape holds the series of one scrape. It is not safe to share.
type Scrape struct {
	families map[string]*family
	common   Labels
	names    map[string]*string
	most     int
}

type family struct {
	dto.MetricFamily
	rest *dto.Metric // what is above the bound
}

func newScrape(most int) *Scrape {
	return &Scrape{families: map[string]*family{}, names: map[string]*string{}, most: most}
}

// Common sets the labels that every later series has, as name, value, name, value.
func (s *Scrape) Common(pairs ...string) {
	s.common = nil
	s.common = s.Labels(pairs...)
}

// Labels are the common labels and these, as name, value, name, value. An empty value
// leaves the label out.
func (s *Scrape) Labels(pairs ...string) Labels {
	own := make([]dto.LabelPair, 0, len(pairs)/2)
	out := make(Labels, 0, len(s.common)+len(pairs)/2)
	out = append(out, s.common...)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		value := strings.ToValidUTF8(pairs[i+1], "\uFFFD")
		own = append(own, dto.LabelPair{Name: s.name(pairs[i]), Value: &value})
		out = append(out, &own[len(own)-1])
	}
	sorted.Stably(out, func(a, b *dto.LabelPair) int { return cmp.Compare(*a.Name, *b.Name) })
	return out
}

func (s *Scrape) name(n string) *string {
	p, ok := s.names[n]
	if !ok {
		p = &n
		s.names[n] = p
	}
	return p
}

// Counter adds a value that only grows since the process started. name ends in _total.
func (s *Scrape) Counter(name, help string, value float64, l Labels) {
	f := s.family(name, help, dto.MetricType_COUNTER)
	if m := s.place(f, l); m.Counter != nil {
		*m.Counter.Value += value
	} else {
		m.Counter = &dto.Counter{Value: &value}
	}
}

// Gauge adds a value of this moment.
func (s *Scrape) Gauge(name, help string, value float64, l Labels) {
	f := s.family(name, help, dto.MetricType_GAUGE)
	if m := s.place(f, l); m.Gauge != nil {
		*m.Gauge.Value += value
	} else {
		m.Gauge = &dto.Gauge{Value: &value}
	}
}

// Histogram adds counts by class; unit is what one unit of the reading is in that of
// the name.
func (s *Scrape) Histogram(name, help string, r meter.Reading, unit float64, l Labels) {
	f := s.family(name, help, dto.MetricType_HISTOGRAM)
	m := s.place(f, l)
	if m.Histogram == nil {
		m.Histogram = newHistogram(r.Bounds, unit)
	}
	var below uint64
	for i, b := range m.Histogram.Bucket {
		below += r.Counts[i]
		*b.CumulativeCount += below
	}
	*m.Histogram.SampleCount += r.Count()
	*m.Histogram.SampleSum += float64(r.Sum) * unit
}

func newHistogram(bounds []int64, unit float64) *dto.Histogram {
	h := &dto.Histogram{SampleCount: new(uint64), SampleSum: new(float64), Bucket: make([]*dto.Bucket, len(bounds))}
	for i, b := range bounds {
		bound := float64(b) * unit
		h.Bucket[i] = &dto.Bucket{UpperBound: &bound, CumulativeCount: new(uint64)}
	}
	return h
}

func (s *Scrape) family(name, help string, kind dto.MetricType) *family {
	f := s.families[name]
	if f == nil {
		f = &family{MetricFamily: dto.MetricFamily{Name: &name, Help: &help, Type: &kind}}
		s.families[name] = f
	}
	return f
}

// place is where the value of a series belongs: a metric of its own, or what the rest
// is added up in.
func (s *Scrape) place(f *family, l Labels) *dto.Metric {
	if len(f.Metric) < s.most {
		m := &dto.Metric{Label: l}
		f.Metric = append(f.Metric, m)
		return m
	}
	if f.rest == nil {
		f.rest = &dto.Metric{Label: s.Labels("otel_metric_overflow", "true")}
		f.Metric = append(f.Metric, f.rest)
	}
	return f.rest
}

// sorted are the families by name.
func (s *Scrape) sorted() []*dto.MetricFamily {
	out := make([]*dto.MetricFamily, 0, len(s.families))
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		out = append(out, &s.families[name].MetricFamily)
	}
	return out
}
