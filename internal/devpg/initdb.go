package devpg

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// initialize makes the data folder once and returns the superuser's password. The rename at its end says that it is
// complete: a crash in the middle leaves a folder that the next start removes.
func (s *Server) initialize() (password string, err error) {
	data, passwordFile := s.dataDir(), filepath.Join(s.dir, "password")
	if _, err := os.Stat(data); err == nil {
		text, err := os.ReadFile(passwordFile)
		if err != nil {
			return "", fmt.Errorf("reading the server's password: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking for the data folder: %w", err)
	}
	password = rand.Text()
	if err := os.WriteFile(passwordFile, []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the server's password: %w", err)
	}
	if err := s.owner.take(passwordFile); err != nil {
		return "", err
	}
	half := data + ".new"
	if err := os.RemoveAll(half); err != nil {
		return "", fmt.Errorf("removing a half-made data folder: %w", err)
	}
	// The socket lies in the server's folder, which is closed to others, so it needs no password.
	cmd := s.binaries.command("initdb", "--pgdata", half, "--username", User, "--pwfile", passwordFile, "--auth-local=trust",
		"--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	s.owner.apply(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initializing the server in %s: %w: %s", s.dir, err, tail(out))
	}
	return password, os.Rename(half, data)
}

func tail(text []byte) string {
	const keep = 1500
	if len(text) > keep {
		text = text[len(text)-keep:]
	}
	return strings.TrimSpace(string(text))
}
