package config

import (
	"fmt"
	"strings"
)

// Table is every setting with its default, as the documents show it: Markdown.
func Table() string {
	var out strings.Builder
	for _, part := range []struct {
		title  string
		target any
		own    bool // of a process: flags and variables set it too
	}{{"Orchestrator", &Orchestrator{}, true}, {"Worker", &Worker{}, true}, {"Database (`pawl config apply`)", &Engine{}, false}} {
		fmt.Fprintf(&out, "### %s\n\n", part.title)
		if part.own {
			out.WriteString("| key | flag | variable | default | what |\n| --- | --- | --- | --- | --- |\n")
		} else {
			out.WriteString("| key | default | what |\n| --- | --- | --- |\n")
		}
		for _, s := range Settings(part.target) {
			cells := []string{code(s.Key)}
			if part.own {
				cells = append(cells, code(s.flagName()), code(s.Env()))
			}
			cells = append(cells, s.shownDefault(), s.Doc)
			fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (s Setting) flagName() string {
	if s.Flag() == "" {
		return ""
	}
	return "--" + s.Flag()
}

func (s Setting) shownDefault() string {
	switch {
	case s.Default != "":
		return strings.TrimSpace(code(s.Default) + " " + s.Unit)
	case s.wants() == "true or false":
		return code("false")
	}
	return "none"
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
