package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// root of the module, seen from this package.
const root = "../.."

// document is one Markdown file.
type document struct {
	path  string // from the root
	lines []string
}

// documents reads all Markdown files of the repository.
func documents() ([]document, error) {
	var found []document
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "dist") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".md") || entry.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		found = append(found, document{path: filepath.ToSlash(relative), lines: strings.Split(string(text), "\n")})
		return err
	})
	return found, err
}

// snippet is a piece of code in a document: a line of a fenced block, or a word in backticks.
type snippet struct {
	line int
	text string
}

var inline = regexp.MustCompile("`([^`]+)`")

// snippets are the document's code; prose holds the lines outside of fences.
func (d document) snippets() (code, prose []snippet) {
	fenced := false
	continued := ""
	for i, line := range d.lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced, continued = !fenced, ""
			continue
		}
		if fenced {
			text := continued + strings.TrimSpace(line)
			if rest, more := strings.CutSuffix(text, "\\"); more {
				continued = rest
				continue
			}
			continued = ""
			code = append(code, snippet{i + 1, text})
			continue
		}
		for _, match := range inline.FindAllStringSubmatch(line, -1) {
			code = append(code, snippet{i + 1, match[1]})
		}
		prose = append(prose, snippet{i + 1, inline.ReplaceAllString(line, "")})
	}
	return code, prose
}

var heading = regexp.MustCompile(`^#{1,6} +(.*)`)

// anchors are what links into the document may name.
func (d document) anchors() map[string]bool {
	all := map[string]bool{}
	_, prose := d.snippets()
	lines := map[int]bool{}
	for _, p := range prose {
		lines[p.line] = true
	}
	for i, line := range d.lines {
		if match := heading.FindStringSubmatch(line); match != nil && lines[i+1] {
			all[slug(match[1])] = true
		}
	}
	return all
}

var dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

func slug(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
}
