package languages

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
)

// errNoCheckout says that there is only the binary.
var errNoCheckout = errors.New("its worker lies in the repository, and this is not run in a checkout of it")

// checkout is the repository's folder: the one that the working directory or the executable lies in.
func checkout() (string, error) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if executable, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(executable))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && bytes.HasPrefix(data, []byte("module github.com/pawl-dev/pawl\n")) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errNoCheckout
}
