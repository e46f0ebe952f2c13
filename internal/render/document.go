package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// APIVersion is the version of the documents: it changes when a field does.
const APIVersion = "mqx/v1"

// A document is {"apiVersion","kind","asOf","items","errors"}, the members of a record in the order of the schema. It is
// written as its records come: what precedes the items with the first one, what follows them at the end.

func (w *Writer) jsonHead() error {
	var b bytes.Buffer
	b.WriteString("{\n")
	fmt.Fprintf(&b, "  %q: %s,\n", "apiVersion", jsonText(APIVersion))
	fmt.Fprintf(&b, "  %q: %s,\n", "kind", jsonText(w.schema.Kind))
	fmt.Fprintf(&b, "  %q: %s,\n", "asOf", jsonText(timestamp(w.o.Now)))
	fmt.Fprintf(&b, "  %q: [", "items")
	return w.text(b.String())
}

func (w *Writer) jsonItem(row []any) error {
	var b bytes.Buffer
	if w.items > 0 {
		b.WriteByte(',')
	}
	b.WriteString("\n    ")
	if err := w.jsonRecord(&b, row); err != nil {
		return err
	}
	return w.text(b.String())
}

func (w *Writer) jsonTail() error {
	var b bytes.Buffer
	if w.items > 0 {
		b.WriteString("\n  ")
	}
	fmt.Fprintf(&b, "],\n  %q: [", "errors")
	for i, p := range w.problems {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		text, err := marshal(p)
		if err != nil {
			return err
		}
		b.Write(text)
	}
	if len(w.problems) > 0 {
		b.WriteString("\n  ")
	}
	b.WriteString("]\n}\n")
	return w.text(b.String())
}

func (w *Writer) writeNDJSON(row []any) error {
	var b bytes.Buffer
	if err := w.jsonRecord(&b, row); err != nil {
		return err
	}
	b.WriteByte('\n')
	return w.text(b.String())
}

func (w *Writer) jsonRecord(b *bytes.Buffer, row []any) error {
	b.WriteByte('{')
	for i, f := range w.schema.Fields {
		if i > 0 {
			b.WriteByte(',')
		}
		text, err := marshal(machine(row[i]))
		if err != nil {
			return fmt.Errorf("cannot write field %q: %w", f.Name, err)
		}
		b.WriteString(jsonText(f.Name))
		b.WriteByte(':')
		b.Write(text)
		if w.o.Strings && (f.Kind == Int || f.Kind == Size) {
			fmt.Fprintf(b, ",%s:%s", jsonText(f.Name+"String"), doubled(row[i]))
		}
	}
	b.WriteByte('}')
	return nil
}

// doubled is the text twin of an integer.
func doubled(v any) string {
	n, ok := v.(int64)
	if !ok {
		return "null"
	}
	return `"` + strconv.FormatInt(n, 10) + `"`
}

// marshal is json.Marshal without the escaping that is meant for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func jsonText(s string) string {
	b, err := marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

func (w *Writer) yamlHead() error {
	return w.yaml("apiVersion", APIVersion, "kind", w.schema.Kind, "asOf", timestamp(w.o.Now))
}

func (w *Writer) yamlItem(row []any) error {
	record := &yaml.Node{Kind: yaml.MappingNode}
	for i, f := range w.schema.Fields {
		if err := addYAML(record, f.Name, machine(row[i])); err != nil {
			return err
		}
		if w.o.Strings && (f.Kind == Int || f.Kind == Size) {
			var twin any
			if n, ok := row[i].(int64); ok {
				twin = strconv.FormatInt(n, 10)
			}
			if err := addYAML(record, f.Name+"String", twin); err != nil {
				return err
			}
		}
	}
	text, err := yamlText("items", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{record}})
	if err != nil {
		return err
	}
	if w.items > 0 {
		_, text, _ = strings.Cut(text, "\n") // the name of the list stands once
	}
	return w.text(text)
}

func (w *Writer) yamlTail() error {
	problems := w.problems
	if problems == nil {
		problems = []Problem{}
	}
	if w.items == 0 {
		return w.yaml("items", []any{}, "errors", problems)
	}
	return w.yaml("errors", problems)
}

// yaml prints members of the document: names and values in turns.
func (w *Writer) yaml(members ...any) error {
	text, err := yamlText(members...)
	if err != nil {
		return err
	}
	return w.text(text)
}

func yamlText(members ...any) (string, error) {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for ; len(members) > 0; members = members[2:] {
		if err := addYAML(doc, members[0].(string), members[1]); err != nil {
			return "", err
		}
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("cannot write output: %w", err)
	}
	return string(text), nil
}

func addYAML(mapping *yaml.Node, name string, value any) error {
	node, ok := value.(*yaml.Node)
	if !ok {
		node = &yaml.Node{}
		if err := node.Encode(value); err != nil {
			return fmt.Errorf("cannot write field %q: %w", name, err)
		}
	}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, node)
	return nil
}
