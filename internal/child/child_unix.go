//go:build unix

package child

import (
	"os/exec"
	"syscall"
)

// Suspend and Resume are signals that stop a process in its tracks, and let it go on.
const (
	Suspend = syscall.SIGSTOP
	Resume  = syscall.SIGCONT
)

// InSession makes the command run in a session of its own: no terminal's Ctrl-C and no hang-up reaches it.
func InSession(cmd *exec.Cmd) { attributes(cmd).Setsid = true }

// InGroup makes the command the leader of a process group: a terminal's Ctrl-C does not reach it, and SignalGroup does.
func InGroup(cmd *exec.Cmd) { attributes(cmd).Setpgid = true }

// As makes the command run as another user, which only root may.
func As(cmd *exec.Cmd, uid, gid uint32) {
	attributes(cmd).Credential = &syscall.Credential{Uid: uid, Gid: gid}
}

// SignalGroup sends a signal to a started command that is InGroup, and to all that it started in its group.
func SignalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	return syscall.Kill(-cmd.Process.Pid, signal)
}

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
