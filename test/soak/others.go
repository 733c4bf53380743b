package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/cachedir"
)

// others are workers in other languages, as far as this machine can run them: commands by name.
func others() map[string][]string {
	found := make(map[string][]string)
	root, err := os.Getwd()
	if err != nil {
		return found
	}
	pythons := [][]string{{"python3"}, {"/usr/bin/python3"}}
	nodes := []string{"node"}
	if cache, err := cachedir.Path(); err == nil { // where set-up puts what it may not install
		pythons = append(pythons, []string{"env", "PYTHONPATH=" + filepath.Join(cache, "python"), "python3"})
		nodes = append(nodes, filepath.Join(cache, "node", "bin", "node"))
	}
	for _, python := range pythons {
		if runs(append(python, "-c", "import sys, psycopg; sys.exit(sys.version_info < (3, 11))")) {
			found["python-worker"] = append(python, filepath.Join(root, "test", "soak", "ledger_worker.py"))
			break
		}
	}
	for _, node := range nodes {
		if runs([]string{node, "-e", "process.exit(+(parseInt(process.versions.node) < 20))"}) &&
			exist(root, "sdk/typescript/dist/index.js", "sdk/typescript/node_modules/pg") {
			found["typescript-worker"] = []string{node, filepath.Join(root, "test", "soak", "ledger_worker.mjs")}
			break
		}
	}
	return found
}

func runs(command []string) bool {
	return exec.Command(command[0], command[1:]...).Run() == nil
}

func exist(root string, files ...string) bool {
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
			return false
		}
	}
	return true
}
