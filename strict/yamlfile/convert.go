package yamlfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"

	"holdfast/strict"
)

// converter writes YAML nodes as JSON and notes the line of each path.
type converter struct {
	file *File
	out  bytes.Buffer
	errs strict.Errors
}

func (c *converter) addf(n *yaml.Node, path, format string, args ...any) {
	if len(c.errs) < strict.MaxErrors {
		c.errs = append(c.errs, strict.FieldError{
			Path: path, Message: fmt.Sprintf(format, args...), File: c.file.name, Line: n.Line,
		})
	}
}

func (c *converter) value(n *yaml.Node, path string, depth int) {
	if depth >= strict.MaxDepth {
		c.addf(n, path, "is nested deeper than %d levels", strict.MaxDepth)
		return
	}
	if n.Kind == yaml.AliasNode {
		c.addf(n, path, "is an alias (*%s): aliases are not read, write the value out", n.Value)
		return
	}
	if n.Anchor != "" {
		c.addf(n, path, "has an anchor (&%s): anchors are not read, remove it", n.Anchor)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		c.mapping(n, path, depth)
	case yaml.SequenceNode:
		c.sequence(n, path, depth)
	default:
		c.scalar(n, path)
	}
}

func (c *converter) mapping(n *yaml.Node, path string, depth int) {
	if n.ShortTag() != "!!map" {
		c.addf(n, path, "has the tag %s: tags are not read, remove it", n.Tag)
		return
	}
	first := map[string]int{}
	c.out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !c.checkKey(key, path) {
			continue
		}
		at := strict.Join(path, key.Value)
		if line, dup := first[key.Value]; dup {
			c.addf(key, at, "is given twice: first on line %d", line)
			continue
		}
		if len(first) > 0 {
			c.out.WriteByte(',')
		}
		first[key.Value] = key.Line
		c.file.lines[at] = key.Line
		c.text(key.Value)
		c.out.WriteByte(':')
		c.value(value, at, depth+1)
	}
	c.out.WriteByte('}')
}

// checkKey refuses every key that is not plain text.
func (c *converter) checkKey(key *yaml.Node, path string) bool {
	switch {
	case key.Kind == yaml.AliasNode:
		c.addf(key, path, "has an alias (*%s) as key: aliases are not read", key.Value)
	case key.Kind != yaml.ScalarNode:
		c.addf(key, path, "has a key that is not text")
	case key.Anchor != "":
		c.addf(key, path, "has an anchor (&%s) at key %q: anchors are not read, remove it", key.Anchor, key.Value)
	case key.ShortTag() == "!!merge":
		c.addf(key, path, "has a merge key (<<): merge keys are not read, write the keys out")
	case key.ShortTag() != "!!str":
		c.addf(key, path, "has the key %s that is not text: put it in quotes", key.Value)
	default:
		return true
	}
	return false
}

func (c *converter) sequence(n *yaml.Node, path string, depth int) {
	if n.ShortTag() != "!!seq" {
		c.addf(n, path, "has the tag %s: tags are not read, remove it", n.Tag)
		return
	}
	c.out.WriteByte('[')
	for i, e := range n.Content {
		if i > 0 {
			c.out.WriteByte(',')
		}
		at := strict.Index(path, i)
		c.file.lines[at] = e.Line
		c.value(e, at, depth+1)
	}
	c.out.WriteByte(']')
}

func (c *converter) scalar(n *yaml.Node, path string) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a time stays text: its reader wants the zone as written
		c.text(n.Value)
	case "!!bool":
		var b bool
		c.scalarValue(n, path, &b, func() any { return b })
	case "!!int":
		c.whole(n, path)
	case "!!float":
		c.float(n, path)
	case "!!null":
		c.addf(n, path, "has no value: give one or leave the key out")
	default:
		c.addf(n, path, "has the tag %s: tags are not read, remove it", n.Tag)
	}
}

func (c *converter) whole(n *yaml.Node, path string) {
	var i int64
	if n.Decode(&i) == nil {
		c.encode(i)
		return
	}
	var u uint64
	c.scalarValue(n, path, &u, func() any { return u })
}

func (c *converter) float(n *yaml.Node, path string) {
	var f float64
	if err := n.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		c.addf(n, path, "%s is not a number that can be used", n.Value)
		return
	}
	c.encode(f)
}

func (c *converter) scalarValue(n *yaml.Node, path string, dst any, value func() any) {
	if err := n.Decode(dst); err != nil {
		c.addf(n, path, "cannot be read: %q", n.Value)
		return
	}
	c.encode(value())
}

func (c *converter) text(s string) { c.encode(s) }

// encode writes plain values, which always encode.
func (c *converter) encode(v any) {
	b, _ := json.Marshal(v)
	c.out.Write(b)
}
