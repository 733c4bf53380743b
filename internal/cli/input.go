package cli

import (
	"context"
	"io"
	"os"
)

// read returns the content of a file, or of standard input for "-". Reading a pipe or a terminal does not end by itself when
// ctx does: it is left behind then, since the process ends.
func (a *app) read(ctx context.Context, what, path string) ([]byte, error) {
	type content struct {
		data []byte
		err  error
	}
	ended := make(chan content, 1)
	go func() {
		var c content
		if path == "-" {
			c.data, c.err = io.ReadAll(a.In)
		} else {
			c.data, c.err = os.ReadFile(path)
		}
		ended <- c
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c := <-ended:
		if c.err != nil {
			return nil, usagef("reading %s: %w", what, c.err)
		}
		return c.data, nil
	}
}

// named is what messages call a path.
func named(path string) string {
	if path == "-" {
		return "stdin"
	}
	return path
}
