package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/internal/devpg"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/program"
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
		return program.Execute(command, nil)
	}
	server, err := devpg.Start(context.Background(), devpg.Config{Settings: devpg.TestSettings(), InMemory: true})
	if err != nil {
		return 1, err
	}
	code, err = program.Execute(command, []string{pgtest.EnvURL + "=" + server.URL("postgres")})
	return code, errors.Join(err, server.Stop())
}
