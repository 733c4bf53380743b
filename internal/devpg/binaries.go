package devpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/cachedir"
)

// MinVersion of Postgres.
const MinVersion = 15

// binaries is a folder with postgres and initdb, and the environment they need.
type binaries struct {
	dir string
	env []string // libraries of packages that were unpacked into the cache
}

func (b binaries) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(b.dir, name), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}, b.env...)
	return cmd
}

// Find returns the folder of the binaries that Start would run, without downloading anything.
func Find() (string, error) {
	found, err := find()
	return found.dir, err
}

// find looks at PATH, pg_config, the distributions' folders (newest first) and what set-up unpacked into the cache.
func find() (binaries, error) {
	var tried []string
	for _, candidate := range candidates() {
		version, err := candidate.version()
		if err != nil {
			continue
		}
		if version >= MinVersion {
			return candidate, nil
		}
		tried = append(tried, fmt.Sprintf("%s is version %d", candidate.dir, version))
	}
	return binaries{}, fmt.Errorf("finding Postgres %d or later: none on this machine %v; run scripts/setup", MinVersion, tried)
}

func candidates() []binaries {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		dirs = append(dirs, newest(pattern)...)
	}
	found := make([]binaries, 0, len(dirs)+2)
	for _, dir := range dirs {
		found = append(found, binaries{dir: dir})
	}
	return append(found, unpacked()...)
}

// unpacked are the folders of the cache: Debian's packages unpacked by set-up, and embedded-postgres' archive.
func unpacked() []binaries {
	var found []binaries
	if root, err := cachedir.Path("postgresql"); err == nil {
		libraries, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*")) // the pattern is well-formed
		for _, dir := range newest(filepath.Join(root, "usr/lib/postgresql/*/bin")) {
			found = append(found, binaries{dir: dir, env: []string{"LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}})
		}
	}
	if root, err := cachedir.Path("embedded-postgres"); err == nil {
		found = append(found, binaries{dir: filepath.Join(root, "bin")})
	}
	return found
}

func newest(pattern string) []string {
	dirs, _ := filepath.Glob(pattern) // the patterns are well-formed
	number := regexp.MustCompile(`\d+`)
	version := func(dir string) int {
		n, _ := strconv.Atoi(number.FindString(strings.TrimPrefix(dir, filepath.Dir(filepath.Dir(pattern)))))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func (b binaries) version() (int, error) {
	if _, err := os.Stat(filepath.Join(b.dir, "initdb")); err != nil {
		return 0, err
	}
	out, err := b.command("postgres", "--version").Output()
	if err != nil {
		return 0, err
	}
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("reading the version of %s: %.80q", b.dir, out)
	}
	return strconv.Atoi(string(match[1]))
}

// ensure finds binaries, else downloads them as the last resort.
func ensure(ctx context.Context) (binaries, error) {
	found, err := find()
	if err == nil {
		return found, nil
	}
	if downloadErr := download(ctx); downloadErr != nil {
		return binaries{}, errors.Join(err, downloadErr)
	}
	return find()
}
