package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Execute runs a command with env added to the environment, and returns its exit code. Signals are passed on; the command
// decides when it has stopped.
func Execute(command, env []string) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("running %s: %w", command[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended just now
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return max(1, exit.ExitCode()), nil // its own output says why
			}
			if err != nil {
				return 1, fmt.Errorf("running %s: %w", command[0], err)
			}
			return 0, nil
		}
	}
}
