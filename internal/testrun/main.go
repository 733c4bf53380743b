package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/pawl-dev/pawl/internal/devpg"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("give the command to run, such as `go test`")
	}
	if os.Getenv(pgtest.EnvURL) != "" {
		return execute(command, nil)
	}
	server, err := devpg.Start(context.Background(), devpg.Config{Settings: devpg.TestSettings()})
	if err != nil {
		return 1, err
	}
	code, err = execute(command, []string{pgtest.EnvURL + "=" + server.URL("postgres")})
	return code, errors.Join(err, server.Stop())
}

// execute runs the command to its end. Signals are passed on; the command decides when it has stopped.
func execute(command, env []string) (int, error) {
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
