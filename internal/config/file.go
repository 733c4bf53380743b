package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/pawl-dev/pawl/internal/nearest"
)

// File is a pawl.toml: settings of processes at the top and in [orchestrator], [worker] and [retention], settings of the
// database in [engine], [retention], [queues.NAME] and [templates."namespace/name"].
type File struct {
	Queues    map[string]Queue
	Templates map[string]Template

	path   string
	values map[string]any // of single settings, by key
}

// Parse reads a file strictly. The error says all that is wrong, each with the path and the key.
func Parse(path string, text []byte) (*File, error) {
	var tree map[string]any
	if _, err := toml.Decode(string(text), &tree); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("%s:%d: %s", path, syntax.Position.Line, syntax.Message)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &File{Queues: map[string]Queue{}, Templates: map[string]Template{}, path: path, values: map[string]any{}}
	r := reader{file: f, known: knownSettings()}
	r.top(tree)
	return f, errors.Join(r.problems...)
}

// Engine returns what the file says of the database's engine, as the keys that pawl.configure_engine takes, and nothing
// for what it does not mention.
func (f *File) Engine() map[string]any {
	said := make(map[string]any)
	for _, s := range Settings(&Engine{}) {
		if value, ok := f.values[s.Key]; ok {
			section, name, _ := strings.Cut(s.Key, ".")
			if section == "retention" {
				name = strings.TrimSuffix(name, "s") + "_retention"
			}
			said[name] = value
		}
	}
	return said
}

func knownSettings() map[string]Setting {
	known := make(map[string]Setting)
	for _, target := range []any{&Orchestrator{}, &Worker{}, &Engine{}} {
		for _, s := range Settings(target) {
			known[s.Key] = s
		}
	}
	return known
}

// sections of a file.
var sections = []string{"orchestrator", "worker", "engine", "retention", "queues", "templates"}

// reader walks a file's tree and collects what is wrong with it.
type reader struct {
	file     *File
	known    map[string]Setting
	problems []error
}

func (r *reader) wrong(key, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s: %s: %s", r.file.path, key, fmt.Sprintf(format, args...)))
}

func (r *reader) top(tree map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		table, isTable := tree[name].(map[string]any)
		switch {
		case name == "queues" && isTable:
			r.queues(table)
		case name == "templates" && isTable:
			r.templates(table)
		case name == "queues" || name == "templates":
			r.wrong(name, "write a section for each, as in [%s.NAME]", name)
		case isTable && !slices.Contains(sections, name):
			r.wrong("["+name+"]", "is unknown%s Sections: %s", orPoint(nearest.Suggestion(name, sections)), strings.Join(sections, ", "))
		case isTable:
			for _, inner := range slices.Sorted(maps.Keys(table)) {
				r.setting(name+"."+inner, table[inner])
			}
		default:
			r.setting(name, tree[name])
		}
	}
}

// setting keeps a known value of the right type.
func (r *reader) setting(key string, value any) {
	s, ok := r.known[key]
	if !ok {
		r.wrong(key, "is unknown%s", nearest.Suggestion(key, slices.Collect(maps.Keys(r.known))))
		return
	}
	if err := s.setTOML(value); err != nil { // into a struct of nobody's, to judge it
		r.wrong(key, "%s", err)
		return
	}
	r.file.values[key] = value
}

// section is one [queues.NAME] or [templates.NAME].
type section struct {
	*reader
	key    string
	fields map[string]any
}

func (r *reader) section(kind, name string, value any) (section, bool) {
	fields, ok := value.(map[string]any)
	if !ok {
		r.wrong(kind+"."+name, "write a section, as in [%s.%s]", kind, name)
	}
	return section{reader: r, key: kind + "." + name, fields: fields}, ok
}

// only refuses fields that are not known.
func (s section) only(known ...string) {
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		if !slices.Contains(known, name) {
			s.wrong(s.key+"."+name, "is unknown%s Allowed: %s",
				orPoint(nearest.Suggestion(name, known)), strings.Join(known, ", "))
		}
	}
}

func orPoint(text string) string {
	if text == "" {
		return "."
	}
	return text
}
