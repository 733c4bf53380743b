package devpg

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/pawl-dev/pawl/internal/child"
)

// owner is the user that a server's processes run as: Postgres refuses to run as root.
type owner struct {
	name     string // empty: the user of this process
	uid, gid uint32
}

func findOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return owner{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return owner{}, fmt.Errorf("finding a user to run Postgres: root may not, and there is neither postgres nor nobody; run `useradd --system postgres`")
}

// adopt gives the folder to the owner and proves that the owner reaches it.
func (o owner) adopt(dir string) error {
	if o.name == "" {
		return nil
	}
	if err := o.take(dir); err != nil {
		return err
	}
	probe := exec.Command("/bin/sh", "-c", `cd "$1"`, "sh", dir)
	o.apply(probe)
	if probe.Run() != nil {
		return fmt.Errorf("using folder %s: as root the server runs as user %s, which cannot reach it; choose a folder outside of %s",
			dir, o.name, closedParent(dir))
	}
	return nil
}

// take gives a file or folder to the owner.
func (o owner) take(path string) error {
	if o.name == "" {
		return nil
	}
	if err := os.Chown(path, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("giving %s to %s: %w", path, o.name, err)
	}
	return nil
}

// apply makes the command run as the owner, in a session of its own: a Ctrl-C in the terminal reaches only the parent,
// which stops its own work first.
func (o owner) apply(cmd *exec.Cmd) {
	child.InSession(cmd)
	if o.name != "" {
		child.As(cmd, o.uid, o.gid)
	}
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
}

func closedParent(dir string) string {
	for dir != "/" {
		dir = filepath.Dir(dir)
		if stat, err := os.Stat(dir); err == nil && stat.Mode().Perm()&0o001 == 0 {
			return dir
		}
	}
	return dir
}
