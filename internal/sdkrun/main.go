package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/pawl-dev/pawl/internal/sandbox"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sdkrun:", err)
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("give the command to run, such as `npm test`")
	}
	s, err := sandbox.Start(context.Background(), sandbox.Config{})
	if err != nil {
		return 1, err
	}
	defer func() {
		if err = errors.Join(err, s.Stop()); err != nil {
			code = max(code, 1)
		}
	}()
	// Signals reach the command too when they come from a terminal; it decides when it has stopped.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), s.Environment()...)
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
			return 0, err
		}
	}
}
