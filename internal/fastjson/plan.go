package fastjson

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is one member of a struct, found through embedded structs too.
type field struct {
	name      string
	prefix    []byte // "name": as it is written
	index     []int
	omitEmpty bool
}

// plan is what is known of a struct type.
type plan struct {
	fields   []field // by name
	byName   map[string]*field
	defaults bool // the type is a Defaulter
}

// Defaulter is implemented by pointers to structs whose members are not zero
// when an object does not have them: Unmarshal calls JSONDefaults before it
// reads the object. A struct that embeds one is one.
type Defaulter interface{ JSONDefaults() }

var defaulter = reflect.TypeFor[Defaulter]()

var plans sync.Map // reflect.Type -> *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{byName: map[string]*field{}, defaults: reflect.PointerTo(t).Implements(defaulter)}
	alts := map[string]string{}
	p.collect(t, nil, alts)
	slices.SortFunc(p.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i := range p.fields {
		p.byName[p.fields[i].name] = &p.fields[i]
	}
	for alt, name := range alts {
		if _, taken := p.byName[alt]; !taken {
			p.byName[alt] = p.byName[name]
		}
	}
	actual, _ := plans.LoadOrStore(t, p)
	return actual.(*plan)
}

// collect adds the members of t; the ones of the outer struct win over those
// of embedded ones.
func (p *plan) collect(t reflect.Type, prefix []int, alts map[string]string) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous && sf.Type.Kind() == reflect.Struct && sf.Tag.Get("json") == "" {
			embedded = append(embedded, sf)
			continue
		}
		if !sf.IsExported() {
			continue
		}
		tag := sf.Tag.Get("json")
		name, rest, _ := strings.Cut(tag, ",")
		if name == "-" {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		if slices.ContainsFunc(p.fields, func(f field) bool { return f.name == name }) {
			continue
		}
		f := field{name: name, index: append(slices.Clone(prefix), i)}
		f.prefix = append(AppendString(nil, name), ':')
		for opt := range strings.SplitSeq(rest, ",") {
			if opt == "omitempty" {
				f.omitEmpty = true
			} else if alt, ok := strings.CutPrefix(opt, "alt="); ok {
				alts[alt] = name
			}
		}
		p.fields = append(p.fields, f)
	}
	for _, sf := range embedded {
		p.collect(sf.Type, append(slices.Clone(prefix), sf.Index...), alts)
	}
}
