package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// others are workers in other languages, as far as this machine can run them: commands by name.
func others() map[string][]string {
	found := make(map[string][]string)
	root, err := os.Getwd()
	if err != nil {
		return found
	}
	script := filepath.Join(root, "test", "soak", "ledger_worker.py")
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		probe := exec.Command(python, "-c", "import sys, psycopg; sys.exit(sys.version_info < (3, 11))")
		if probe.Run() == nil {
			found["python-worker"] = []string{python, script}
			break
		}
	}
	if node, err := exec.LookPath("node"); err == nil && exist(root, "sdk/typescript/dist/index.js", "sdk/typescript/node_modules/pg") {
		found["typescript-worker"] = []string{node, filepath.Join(root, "test", "soak", "ledger_worker.mjs")}
	}
	return found
}

func exist(root string, files ...string) bool {
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
			return false
		}
	}
	return true
}
