package child

import (
	"os/exec"
	"syscall"
)

// DieWithParent has the kernel kill the command with SIGKILL when the thread that started it ends, as it does when this process
// ends, however that comes. Only Linux can: elsewhere nothing happens, and the command outlives a parent that is killed.
func DieWithParent(cmd *exec.Cmd) { attributes(cmd).Pdeathsig = syscall.SIGKILL }
