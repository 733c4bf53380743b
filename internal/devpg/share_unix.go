//go:build unix

package devpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/child"
)

// Shared is a server that several processes use; it lives a little longer than the last of them.
type Shared struct {
	port     int
	password string
	users    *os.File // locked (shared) as long as this process lives: that keeps the server alive
}

// URL of a database on the server.
func (s *Shared) URL(database string) string {
	return serverURL(s.port, s.password, database)
}

// Leave stops keeping the server alive, before the process ends.
func (s *Shared) Leave() error { return s.users.Close() }

// sharedScript stops the server when nobody has held the users' lock for a while. The lock is held while it stops, so
// that a new user waits and then starts a server anew.
const sharedScript = stopScript + `
trap '' INT TERM HUP
idle=0
while [ -f "$1/data/postmaster.pid" ]; do
  sleep "$2"
  if flock -n -x "$1/users.lock" true; then idle=$((idle+1)); else idle=0; fi
  if [ $idle -ge 12 ]; then
    exec 9>>"$1/users.lock"
    if flock -n -x 9; then stop_server "$1" keep; exit 0; fi
    exec 9>&-
  fi
done
`

// Share returns the server of config.Dir, which is started when it does not run; other processes share it. It keeps
// running while any process that called Share lives, and stops a minute later. It needs flock(1), as on any Linux.
func Share(ctx context.Context, config Config) (*Shared, error) {
	shared, err := share(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("sharing a Postgres in %s: %w", config.Dir, err)
	}
	return shared, nil
}

func share(ctx context.Context, config Config) (*Shared, error) {
	if _, err := exec.LookPath("flock"); err != nil {
		return nil, err
	}
	s, err := prepare(ctx, config)
	if err != nil {
		return nil, err
	}
	users, err := lockFile(filepath.Join(s.dir, "users.lock"), syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	starting, err := lockFile(filepath.Join(s.dir, "start.lock"), syscall.LOCK_EX)
	if err != nil {
		return nil, errors.Join(err, users.Close())
	}
	defer starting.Close() // unlocks
	if !s.running(ctx) {
		if err := s.startDetached(ctx); err != nil {
			return nil, errors.Join(err, users.Close())
		}
	}
	return &Shared{port: s.port, password: s.password, users: users}, nil
}

func lockFile(name string, how int) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", name, err), file.Close())
	}
	return file, nil
}

// running tells whether the server that the folder's files speak of answers.
func (s *Server) running(ctx context.Context) bool {
	text, err := os.ReadFile(filepath.Join(s.dataDir(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 4 {
		return false
	}
	if s.port, err = strconv.Atoi(strings.TrimSpace(lines[3])); err != nil {
		return false
	}
	password, err := os.ReadFile(filepath.Join(s.dir, "password"))
	if err != nil {
		return false
	}
	s.password = strings.TrimSpace(string(password))
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return false
	}
	for deadline := time.Now().Add(startTimeout); ; { // on a busy machine a living server may be slow to answer
		if s.answers(ctx) {
			return true
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// startDetached starts the server and the process that stops it when it is idle. A folder from which the server does
// not start (it may run without fsync, and the machine may have crashed) is made anew.
func (s *Server) startDetached(ctx context.Context) error {
	var err error
	if s.password, err = s.initialize(); err == nil {
		err = s.launch(ctx)
	}
	if err != nil && ctx.Err() == nil {
		err = errors.Join(s.endProcess(), os.RemoveAll(s.dataDir()))
		if err == nil {
			s.password, err = s.initialize()
		}
		if err == nil {
			err = s.launch(ctx)
		}
	}
	if err != nil {
		return err
	}
	watch := exec.Command("/bin/sh", "-c", sharedScript, "pawl-watcher", s.dir, s.config.lookInterval)
	child.InSession(watch)
	watch.Dir = "/"
	if err := watch.Start(); err != nil {
		return errors.Join(fmt.Errorf("starting the server's watcher: %w", err), s.endProcess())
	}
	go func() { _ = watch.Wait() }() // it may end before this process: reap it
	return nil
}
