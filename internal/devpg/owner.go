package devpg

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user that a server's processes run as: Postgres refuses to run as root.
type owner struct {
	name       string
	credential *syscall.Credential // nil: the user of this process
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
			return owner{name: name, credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return owner{}, fmt.Errorf("finding a user to run Postgres: root may not, and there is neither postgres nor nobody; run `useradd --system postgres`")
}

// adopt gives the folder to the owner and proves that the owner reaches it.
func (o owner) adopt(dir string) error {
	if o.credential == nil {
		return nil
	}
	if err := os.Chown(dir, int(o.credential.Uid), int(o.credential.Gid)); err != nil {
		return fmt.Errorf("giving %s to %s: %w", dir, o.name, err)
	}
	probe := exec.Command("/bin/sh", "-c", `cd "$1"`, "sh", dir)
	o.apply(probe)
	if probe.Run() != nil {
		return fmt.Errorf("using folder %s: as root the server runs as user %s, which cannot reach it; choose a folder outside of %s",
			dir, o.name, closedParent(dir))
	}
	return nil
}

// apply makes the command run as the owner, in a session of its own: a Ctrl-C in the terminal reaches only the parent,
// which stops its own work first.
func (o owner) apply(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: o.credential}
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
