package render

import (
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

// parseTemplate parses the text of -o template= and checks the fields it names
// against the schema, before any record has been asked for.
func parseTemplate(text string, s *Schema) (*template.Template, error) {
	// A shell hands \n and \t over as two letters.
	text = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(text)
	t, err := template.New("output").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse output template: %w", err)
	}
	if t.Tree == nil {
		return t, nil
	}
	c := fieldCheck{schema: s}
	c.node(t.Root, true)
	return t, c.err
}

// fieldCheck walks a template. Where dot is the record its fields are known; in
// the body of a range or a with it is something else, and only $ still is the
// record; a template that is defined inside is left to its run.
type fieldCheck struct {
	schema *Schema
	err    error
}

func (c *fieldCheck) field(names []string) {
	if len(names) > 0 && c.schema.index(names[0]) < 0 && c.err == nil {
		c.err = unknownField("print", names[0], c.schema)
	}
}

func (c *fieldCheck) node(n parse.Node, record bool) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, x := range n.Nodes {
			c.node(x, record)
		}
	case *parse.ActionNode:
		c.pipe(n.Pipe, record)
	case *parse.TemplateNode:
		c.pipe(n.Pipe, record)
	case *parse.IfNode:
		c.branch(&n.BranchNode, record, record)
	case *parse.RangeNode:
		c.branch(&n.BranchNode, record, false)
	case *parse.WithNode:
		c.branch(&n.BranchNode, record, false)
	case *parse.PipeNode:
		c.pipe(n, record)
	case *parse.ChainNode:
		c.node(n.Node, record)
	case *parse.FieldNode:
		if record {
			c.field(n.Ident)
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			c.field(n.Ident[1:])
		}
	}
}

func (c *fieldCheck) branch(n *parse.BranchNode, record, inside bool) {
	c.pipe(n.Pipe, record)
	c.node(n.List, inside)
	c.node(n.ElseList, record)
}

func (c *fieldCheck) pipe(p *parse.PipeNode, record bool) {
	if p == nil {
		return
	}
	for _, cmd := range p.Cmds {
		for _, arg := range cmd.Args {
			c.node(arg, record)
		}
	}
}
