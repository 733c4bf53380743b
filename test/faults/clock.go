package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/cachedir"
)

// ErrNoFaketime says that clocks cannot be moved on this machine.
var ErrNoFaketime = errors.New("libfaketime is not installed: `scripts/setup soak` or `apt-get install libfaketime` installs it")

// Clock is the wall clock of a server that is started with its environment: libfaketime tells that server's processes a
// time that is off by as much as the clock has jumped. The clock of everybody else stays, and so do monotonic clocks.
type Clock struct {
	library, file string

	mu      sync.Mutex
	offset  time.Duration // guarded by mu
	highest time.Time     // the latest time that a jump back left behind; guarded by mu
}

// NewClock is a clock that is right. The file holds its offset; the server's user must be able to read it. ErrNoFaketime
// when the library is missing.
func NewClock(file string) (*Clock, error) {
	library, err := findFaketime()
	if err != nil {
		return nil, err
	}
	c := &Clock{library: library, file: file}
	return c, c.write()
}

// findFaketime looks where distributions put the library, and where set-up unpacks it.
func findFaketime() (string, error) {
	patterns := []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1"}
	if root, err := cachedir.Path("faketime"); err == nil {
		patterns = append(patterns, filepath.Join(root, "usr/lib/*/faketime/libfaketime.so.1"))
	}
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the patterns are well-formed
			return found[0], nil
		}
	}
	return "", ErrNoFaketime
}

// Environment of the server. The file is read whenever the server asks for the time: some microseconds each.
func (c *Clock) Environment() []string {
	return []string{
		"LD_PRELOAD=" + c.library, "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1", "NO_FAKE_STAT=1",
	}
}

// Jump moves the clock, forward or back, at once and for good.
func (c *Clock) Jump(by time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now().Add(c.offset); now.After(c.highest) {
		c.highest = now
	}
	c.offset += by
	return c.write()
}

// Offset from the right time.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Behind is how long it takes until the clock tells the latest time again that it has told. So long what was to be done at
// that time may wait.
func (c *Clock) Behind() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.highest.Sub(time.Now().Add(c.offset)))
}

// write replaces the file, so that nobody reads half of it; the caller holds mu.
func (c *Clock) write() error {
	fresh := c.file + ".new"
	err := os.WriteFile(fresh, fmt.Appendf(nil, "%+.3f\n", c.offset.Seconds()), 0o644)
	if err == nil {
		err = os.Rename(fresh, c.file)
	}
	if err != nil {
		return fmt.Errorf("moving a clock: %w", err)
	}
	return nil
}
