package cachedir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Root is where the cache of a process run by root lies: users that the server runs under must reach it, so it cannot
// be in root's home.
const Root = "/var/cache/pawl"

// Path joins the elements to the cache folder (PAWL_CACHE_DIR, else Root for root, else the user's cache folder).
// Nothing is created.
func Path(elem ...string) (string, error) {
	base := os.Getenv("PAWL_CACHE_DIR")
	switch {
	case base != "":
	case os.Geteuid() == 0:
		base = Root
	default:
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache folder: %w; set PAWL_CACHE_DIR", err)
		}
		base = filepath.Join(user, "pawl")
	}
	return filepath.Join(append([]string{base}, elem...)...), nil
}
