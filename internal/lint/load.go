package lint

import (
	"os"
	"path/filepath"
)

func load(path string) (file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	relative, err := filepath.Rel(root, path)
	return file{path: filepath.ToSlash(relative), text: text}, err
}
