package workflow

import (
	"errors"
	"fmt"
	"io/fs"
)

// ParseFS reads the templates of all files that match one of the patterns, which
// [fs.Glob] explains, from a file system that is handed in: usually an [embed.FS],
// so that a program brings its templates along. Files are read once each, in the
// order of the patterns and of their names. The error is a [*ParseError] that names
// all problems of all files, or says that a pattern is malformed or matches nothing,
// or that a file cannot be read; then no template is returned.
func ParseFS(fsys fs.FS, patterns ...string) ([]*Template, error) {
	if len(patterns) == 0 {
		return nil, errors.New("reading templates: name the files with a pattern, such as *.yaml")
	}
	var templates []*Template
	var problems []Problem
	seen := make(map[string]bool)
	for _, pattern := range patterns {
		files, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, fmt.Errorf("reading templates: pattern %q: %w", pattern, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("reading templates: no file matches %q", pattern)
		}
		for _, file := range files {
			if seen[file] {
				continue
			}
			seen[file] = true
			data, err := fs.ReadFile(fsys, file)
			if err != nil {
				return nil, fmt.Errorf("reading templates: %w", err)
			}
			parsed, err := ParseTemplates(file, data)
			var bad *ParseError
			switch {
			case errors.As(err, &bad):
				problems = append(problems, bad.Problems...)
			case err != nil:
				return nil, err
			}
			templates = append(templates, parsed...)
		}
	}
	if len(problems) > 0 {
		return nil, &ParseError{Problems: problems}
	}
	return templates, nil
}
