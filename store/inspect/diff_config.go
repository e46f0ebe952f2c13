package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mqx/internal/fastjson"
)

// notCompared are members of configuration files that say nothing of their own.
var notCompared = map[string]bool{"dataVersion": true, "groupTopicMap": true, "pullOffsetTable": true, "orderInfoCount": true}

// configs compares the configuration files, member by member.
func (d *differ) configs() error {
	na, err := d.a.JSONNames()
	if err != nil {
		return err
	}
	nb, err := d.b.JSONNames()
	if err != nil {
		return err
	}
	names := append(na, nb...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !strings.HasSuffix(name, ".json") {
			continue // metrics: they count what was done, not what is
		}
		a, err := d.a.JSON(name)
		if err != nil {
			return err
		}
		b, err := d.b.JSON(name)
		if err != nil {
			return err
		}
		if err := d.tree(name, "", treeOf(a), treeOf(b)); err != nil {
			return err
		}
	}
	return nil
}

func treeOf(j *JSONFile) any {
	if c := j.Good(); c != nil {
		return c.Tree
	}
	return nil
}

// tree compares two values of a file. A table that only one has counts member by member.
func (d *differ) tree(file, path string, a, b any) error {
	ma, isA := a.(map[string]any)
	mb, isB := b.(map[string]any)
	if (isA || a == nil) && (isB || b == nil) && (isA || isB) {
		keys := slices.Collect(maps.Keys(ma))
		for k := range mb {
			if _, ok := ma[k]; !ok {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			if notCompared[k] && path == "" {
				continue
			}
			name := k
			if path != "" {
				name = path + "/" + k
			}
			if err := d.tree(file, name, ma[k], mb[k]); err != nil {
				return err
			}
		}
		return nil
	}
	textA, textB := valueText(a), valueText(b)
	if textA == textB {
		return nil
	}
	textA, textB = clipped(textA), clipped(textB)
	kind := DiffConfig
	if file == fileOffsets || file == "delayOffset.json" || file == fileLightOffsets {
		kind = DiffOffset
	}
	side := SideBoth
	switch {
	case b == nil:
		side = SideFirst
	case a == nil:
		side = SideSecond
	}
	return d.tell(Difference{
		Kind: kind, Side: side, Name: nameConfig + "/" + file, From: -1, To: -1, First: textA, Second: textB, QueueOffset: -1, Phys: -1,
		What: fmt.Sprintf("%s: %s", path, differText(side, textA, textB)),
	})
}

func differText(side Side, a, b string) string {
	switch side {
	case SideFirst:
		return "only the first has it, as " + a
	case SideSecond:
		return "only the second has it, as " + b
	case SideBoth:
	}
	return a + " in the first, " + b + " in the second"
}

// maxValueText bounds how much of a value is told.
const maxValueText = 200

func valueText(v any) string {
	if v == nil {
		return ""
	}
	b, err := fastjson.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func clipped(s string) string {
	if len(s) > maxValueText {
		return strings.ToValidUTF8(s[:maxValueText], "") + "…"
	}
	return s
}
