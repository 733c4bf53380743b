//go:build !linux

package child

import "os/exec"

// DieWithParent does nothing: only Linux can.
func DieWithParent(*exec.Cmd) {}
