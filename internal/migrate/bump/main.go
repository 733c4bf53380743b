// Command bump raises the number in sql/functions.sum when a function or trigger has changed. `make generate` runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/migrate"
)

func main() {
	dir := flag.String("dir", "sql", "folder with functions/, triggers/ and functions.sum")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "bump:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	digest, err := migrate.FunctionsDigest(os.DirFS(dir))
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "functions.sum")
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var number int
	var recorded string
	if _, err := fmt.Sscan(string(data), &number, &recorded); err != nil && len(data) > 0 {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if recorded == digest {
		return nil
	}
	return os.WriteFile(file, fmt.Appendf(nil, "%d %s\n", number+1, digest), 0o644)
}
