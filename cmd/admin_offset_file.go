package cmd

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"mqx/admin"
)

// offsetFile is offsets as offset export and --undo-file write them.
type offsetFile struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	AsOf       time.Time    `json:"asOf"`
	Items      []offsetItem `json:"items"`
}

// offsetItem is the offset of a group in a queue.
type offsetItem struct {
	Group   string `json:"group"`
	Topic   string `json:"topic"`
	Broker  string `json:"broker"`
	QueueID *int32 `json:"queueId"`
	Offset  *int64 `json:"offset"`
}

const maxOffsetFile = 64 << 20

// readOffsets reads such a file; "-" is stdin.
func (a *app) readOffsets(path string) (*offsetFile, error) {
	data, err := a.readInput(path, "offsets", "a FILE of mqx admin offset export", maxOffsetFile)
	if err != nil {
		return nil, err
	}
	f := &offsetFile{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, usagef("cannot read offsets %q: %w", path, err).try("a FILE of mqx admin offset export")
	}
	for i, it := range f.Items {
		if it.Topic == "" || it.Broker == "" || it.QueueID == nil || *it.QueueID < 0 || it.Offset != nil && *it.Offset < 0 {
			return nil, usagef("cannot read offsets %q: item %d has no topic, broker, queueId or offset", path, i+1).try("a FILE of mqx admin offset export")
		}
	}
	if len(f.Items) == 0 {
		return nil, usagef("cannot use offsets %q: it holds none", path).try("a FILE of mqx admin offset export")
	}
	return f, nil
}

// groups are the groups of a file, sorted.
func (f *offsetFile) groups() []string {
	var out []string
	for _, it := range f.Items {
		out = append(out, it.Group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// values are the offsets for a group: its own where the file has them, else those of
// the only group there is.
func (f *offsetFile) values(group string) []admin.OffsetValue {
	from := group
	if groups := f.groups(); !slices.Contains(groups, group) && len(groups) == 1 {
		from = groups[0]
	}
	var out []admin.OffsetValue
	for _, it := range f.Items {
		if it.Group == from && it.Offset != nil {
			out = append(out, admin.OffsetValue{QueueID: admin.QueueID{Topic: it.Topic, Broker: it.Broker, QueueID: *it.QueueID}, Offset: *it.Offset})
		}
	}
	return out
}

func offsetFileOf(group string, values []admin.OffsetValue) *offsetFile {
	f := &offsetFile{APIVersion: planVersion, Kind: offsetSchema.Kind, AsOf: time.Now().UTC().Truncate(time.Second), Items: []offsetItem{}}
	for _, v := range values {
		f.Items = append(f.Items, offsetItem{group, v.Topic, v.Broker, &v.QueueID.QueueID, &v.Offset})
	}
	return f
}

func (f *offsetFile) encode() ([]byte, error) {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write offsets: %w", err)
	}
	return append(text, '\n'), nil
}
