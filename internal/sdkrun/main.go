package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/internal/program"
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
	return program.Execute(command, s.Environment())
}
