package languages

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/cachedir"
)

// ErrNoNode and ErrNotBuilt tell apart what TypeScript lacks.
var (
	ErrNoNode   = errors.New("this machine has no Node 20 or later")
	ErrNotBuilt = errors.New("sdk/typescript is not built, or its source is newer (scripts/setup demo builds it)")
)

const minNode = 20

// TypeScript is sdk/typescript/examples/shop_parcels.ts, compiled. The error says in a few words what there is not.
func TypeScript(name string) (Command, error) {
	root, err := checkout()
	if err != nil {
		return Command{}, err
	}
	node, err := findNode()
	if err != nil {
		return Command{}, err
	}
	dir := filepath.Join(root, "sdk", "typescript")
	script := filepath.Join("build", "examples", "shop_parcels.js")
	if !built(dir, script) {
		return Command{}, ErrNotBuilt
	}
	return Command{
		Args: []string{node, script, "--until-eof"},
		Dir:  dir, Env: []string{"SHOP_WORKER=" + name},
	}, nil
}

func built(dir, script string) bool {
	for _, needed := range []string{"dist/index.js", "node_modules/pg/package.json"} {
		if _, err := os.Stat(filepath.Join(dir, needed)); err != nil {
			return false
		}
	}
	source, err := os.Stat(filepath.Join(dir, "examples", "shop_parcels.ts"))
	if err != nil {
		return false
	}
	compiled, err := os.Stat(filepath.Join(dir, script))
	return err == nil && !compiled.ModTime().Before(source.ModTime())
}

// findNode looks at PATH and at what set-up put into the cache.
func findNode() (string, error) {
	cached, err := cachedir.Path("node", "bin", "node")
	if err != nil {
		return "", err
	}
	for _, node := range []string{"node", cached} {
		out, err := exec.Command(node, "--version").Output()
		if err != nil {
			continue
		}
		major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
		if n, err := strconv.Atoi(major); err == nil && n >= minNode {
			return node, nil
		}
	}
	return "", ErrNoNode
}
