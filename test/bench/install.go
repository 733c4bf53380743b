package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
)

// installPeers runs `npm ci` in peers/ unless what it brings is there. The error is why the peers' cells stay empty.
var installPeers = sync.OnceValue(func() error {
	if _, err := exec.LookPath("npm"); err != nil {
		return errors.New("needs Node 20 and npm")
	}
	wanted, err := os.Stat(filepath.Join(peersFolder, "package-lock.json"))
	if err != nil {
		return err
	}
	if installed, err := os.Stat(filepath.Join(peersFolder, "node_modules", ".package-lock.json")); err == nil && installed.ModTime().After(wanted.ModTime()) {
		return nil
	}
	fmt.Fprintln(os.Stderr, "installing peers with npm ci in test/bench/peers")
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir, cmd.Stdout, cmd.Stderr = peersFolder, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm ci failed: %w", err)
	}
	return nil
})

// versions of the peers as they are pinned: in go.mod and in package.json.
func versions() string {
	var found []string
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if m.Path == "github.com/riverqueue/river" {
				found = append(found, "River "+strings.TrimPrefix(m.Version, "v"))
			}
		}
	}
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	text, err := os.ReadFile(filepath.Join(peersFolder, "package.json"))
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		return strings.Join(found, ", ")
	}
	for _, name := range []string{"@pgflow/core", "@dbos-inc/dbos-sdk", "graphile-worker", "pg-boss"} {
		found = append(found, name+" "+manifest.Dependencies[name])
	}
	if out, err := exec.Command("node", "--version").Output(); err == nil {
		found = append(found, "Node "+strings.TrimPrefix(strings.TrimSpace(string(out)), "v"))
	}
	return strings.Join(found, ", ")
}
