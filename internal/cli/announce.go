package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/cachedir"
	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// devFile is where a running `pawl dev` leaves its address for this user's other terminals.
func devFile() (string, error) {
	return cachedir.Path(fmt.Sprintf("dev-%d.url", os.Getuid()))
}

// announceDev lets other commands of this user find the database; forget takes that back. While another pawl dev that is
// announced runs, nothing changes and other is its address: a command must not change its database by itself.
func announceDev(ctx context.Context, url string) (forget func(), other string, err error) {
	path, err := devFile()
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, "", fmt.Errorf("making the cache folder: %w", err)
	}
	for range 5 { // others that start now may be quicker
		if err = writeNew(path, url+"\n"); !errors.Is(err, fs.ErrExist) {
			break
		}
		former := announced(path)
		if former != url && answers(ctx, former) {
			return func() {}, former, nil
		}
		_ = os.Remove(path) // of one that was killed
	}
	if err != nil {
		return nil, "", fmt.Errorf("announcing the database: %w", err)
	}
	return func() {
		if announced(path) == url {
			_ = os.Remove(path) // somebody else was faster
		}
	}, "", nil
}

// writeNew writes a file that must not be there.
func writeNew(path, text string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// announced is the address in the file, or "".
func announced(path string) string {
	text, _ := os.ReadFile(path) // usually there is none
	return strings.TrimSpace(string(text))
}

// answers says whether the server at the URL is the one whose password it holds, also while that is too busy to let us in.
func answers(ctx context.Context, url string) bool {
	if url == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err == nil {
		_ = conn.Close(ctx) // nothing was said
		return true
	}
	if code := sqlstate.Of(err); code != "" {
		return code != sqlstate.WrongPassword
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// place is where a URL leads, without its password.
func place(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "another address"
	}
	return u.Host
}
