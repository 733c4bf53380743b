package child

import (
	"os/exec"
	"syscall"
)

// Suspend and Resume are no signals here: sending one fails.
const (
	Suspend = syscall.Signal(-1)
	Resume  = syscall.Signal(-2)
)

// InSession does nothing.
func InSession(*exec.Cmd) {}

// InGroup does nothing.
func InGroup(*exec.Cmd) {}

// As does nothing.
func As(*exec.Cmd, uint32, uint32) {}

// SignalGroup sends a signal to the command alone; all but SIGKILL fail.
func SignalGroup(cmd *exec.Cmd, signal syscall.Signal) error { return cmd.Process.Signal(signal) }
