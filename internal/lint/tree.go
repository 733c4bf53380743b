package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// root of the module, seen from this package's folder.
const root = "../.."

// skipped folders hold nothing that we wrote: rapid are the draws that it keeps of a failed run.
var skipped = []string{".git", "bin", "node_modules", ".venv", "__pycache__", "dist", "rapid"}

// file of the module.
type file struct {
	path string // relative to the root, with slashes
	text []byte
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f file) lines() int { return bytes.Count(f.text, []byte("\n")) }

func (f file) generated() bool {
	return bytes.Contains(f.text[:min(len(f.text), 200)], []byte("Code generated"))
}

// read returns the files with one of the endings; without endings, all text files.
func read(endings ...string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(skipped, entry.Name()) {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() || len(endings) > 0 && !slices.Contains(endings, filepath.Ext(path)) {
			return nil
		}
		f, err := load(path)
		if err == nil && !bytes.Contains(f.text, []byte{0}) {
			files = append(files, f)
		}
		return err
	})
	return files, err
}

// goFile is a parsed file of Go.
type goFile struct {
	file
	tree  *ast.File
	lines *token.FileSet
}

func readGo() ([]goFile, error) {
	files, err := read(".go")
	if err != nil {
		return nil, err
	}
	parsed := make([]goFile, 0, len(files))
	for _, f := range files {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, f.path, f.text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, goFile{file: f, tree: tree, lines: set})
	}
	return parsed, nil
}

func (f goFile) line(pos token.Pos) int { return f.lines.Position(pos).Line }

// dir of the package, relative to the root.
func (f goFile) dir() string { return filepath.ToSlash(filepath.Dir(f.path)) }
