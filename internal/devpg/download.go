package devpg

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	embedded "github.com/fergusstrange/embedded-postgres"

	"github.com/pawl-dev/pawl/internal/cachedir"
)

// download fetches Postgres' binaries into the cache with embedded-postgres, whose own way of running a server is not
// used: it cannot run as root and leaves the server behind when its parent is killed. The library unpacks only on
// Start, so it is started and stopped once; a start that failed after unpacking (as root) is good enough, and find
// decides. Where this was written its archive's host could not be reached: this way has been run up to that error only.
func download(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := cachedir.Path("embedded-postgres")
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	server := embedded.NewDatabase(embedded.DefaultConfig().
		Version(embedded.V17).
		Port(uint32(port)).
		BinariesPath(root).
		CachePath(filepath.Join(root, "archive")).
		RuntimePath(filepath.Join(root, "runtime")).
		DataPath(filepath.Join(root, "runtime", "data")).
		Logger(io.Discard))
	startErr := server.Start()
	if startErr == nil {
		return server.Stop()
	}
	if _, err := (binaries{dir: filepath.Join(root, "bin")}).version(); err != nil {
		return fmt.Errorf("downloading Postgres: %w", startErr)
	}
	return nil
}
