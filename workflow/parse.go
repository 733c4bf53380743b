package workflow

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ParseTemplates reads a file of templates in YAML, one template in each
// document. It checks everything that can be known without the database and
// fills in every default. The error is a [*ParseError] that names all problems
// of the file at once; then no template is returned. The file's name appears in
// the problems only: nothing is read.
func ParseTemplates(file string, data []byte) ([]*Template, error) {
	d := newDecoder(file)
	if len(data) > MaxFileBytes {
		d.failAt(1, "the file has %d bytes; at most %d, split it", len(data), MaxFileBytes)
		return nil, &ParseError{Problems: d.problems}
	}
	var templates []*Template
	stream := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := stream.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			d.syntax(err, data)
			break
		}
		if root := resolve(doc.Content[0]); !isNull(root) {
			templates = append(templates, d.template(root))
		}
	}
	if len(templates) == 0 && len(d.problems) == 0 {
		d.failAt(1, "the file holds no template")
	}
	d.compare(templates)
	if len(d.problems) > 0 {
		return nil, &ParseError{Problems: sortProblems(d.problems)}
	}
	for _, t := range templates {
		if err := t.define(); err != nil {
			return nil, err
		}
	}
	return templates, nil
}

var (
	yamlLine   = regexp.MustCompile(`^(?:yaml: )?(?:line ([0-9]+): )?(.*)`)
	yamlAnchor = regexp.MustCompile(`unknown anchor '([^']*)' referenced`)
)

// syntax notes that the file is not YAML. What follows such a place is not read.
func (d *decoder) syntax(err error, data []byte) {
	m := yamlLine.FindStringSubmatch(err.Error())
	line, message := 1, err.Error()
	if m != nil {
		message = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			line = n
		}
	}
	if a := yamlAnchor.FindStringSubmatch(err.Error()); a != nil {
		if at := bytes.Index(data, []byte("*"+a[1])); at >= 0 {
			line = 1 + bytes.Count(data[:at], []byte("\n"))
		}
	}
	d.failAt(line, "not YAML: %s", strings.ToValidUTF8(message, "?"))
}

// compare checks what concerns all templates of a file.
func (d *decoder) compare(templates []*Template) {
	seen := make(map[string]*Template, len(templates))
	for _, t := range templates {
		if t.Namespace == "" || t.Name == "" || t.Version == "" {
			continue
		}
		if first := seen[t.Ref()]; first != nil {
			d.failAt(t.Line, "template %s is given twice, first in line %d", t.Ref(), first.Line)
			continue
		}
		seen[t.Ref()] = t
	}
}
