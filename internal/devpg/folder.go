package devpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ours are the names of what servers leave in their folder, beside their sockets. A file system's root may have lost+found.
var ours = []string{"data", "data.new", "password", "server.log", "users.lock", "start.lock", "lost+found"}

// checkFolder refuses a folder that holds something else than a server's database: what is in it is another's, and stays so.
// One that does not exist is fine, and so is one in which an earlier start ended before its database was whole.
func checkFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("looking into the server's folder: %w", err)
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	database := has("data/PG_VERSION") && has("password")
	stranger := func(e fs.DirEntry) bool {
		return !slices.Contains(ours, e.Name()) && !strings.HasPrefix(e.Name(), ".s.PGSQL.") || e.Name() == "data"
	}
	if !database && slices.ContainsFunc(entries, stranger) {
		return fmt.Errorf("folder %s is not empty and holds no database of pawl dev; name a new or an empty one", dir)
	}
	return nil
}
