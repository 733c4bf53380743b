package pgmqsql

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

const (
	// npmPackage ships upstream's files in dist/pgmq.tar.gz: it reaches machines that see package registries only.
	npmPackage = "@electric-sql/pglite-pgmq@0.0.6"
	// upstream is the same text at upstream's tag. Where this was written the host could not be reached, so this way
	// has never been run; the checksum decides whether what comes back is used.
	upstream = "https://raw.githubusercontent.com/pgmq/pgmq/v" + Version + "/pgmq-extension/sql/pgmq.sql"
	maxSize  = 8 << 20
)

// Ensure fetches PGMQ's SQL into the cache unless Load finds it, and returns it. It needs npm or access to GitHub.
func Ensure(ctx context.Context) (string, error) {
	text, err := Load()
	if !errors.Is(err, ErrMissing) {
		return text, err
	}
	data, npmErr := fromNpm(ctx)
	if npmErr != nil {
		var webErr error
		if data, webErr = fromUpstream(ctx); webErr != nil {
			return "", errors.Join(ErrMissing, npmErr, webErr)
		}
	}
	if err := store(data); err != nil {
		return "", err
	}
	return string(data), nil
}

// store writes the file by rename, so that a reader never sees half of it.
func store(data []byte) error {
	file, err := Path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), "pgmq-*")
	if err != nil {
		return fmt.Errorf("storing PGMQ's SQL: %w", err)
	}
	defer os.Remove(temp.Name()) // gone after the rename
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		return fmt.Errorf("storing PGMQ's SQL: %w", err)
	}
	return os.Rename(temp.Name(), file)
}

func fromNpm(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "pawl-pgmq-")
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", npmPackage, err)
	}
	defer os.RemoveAll(dir) // a temporary folder
	cmd := exec.CommandContext(ctx, "npm", "pack", "--silent", npmPackage)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("fetching %s: %w: %.300s", npmPackage, err, out)
	}
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packed) != 1 {
		return nil, fmt.Errorf("fetching %s: npm pack wrote %d files", npmPackage, len(packed))
	}
	file, err := os.Open(packed[0])
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", npmPackage, err)
	}
	defer file.Close() // only read
	return fromPackage(file)
}

// fromPackage takes the SQL out of the npm package: a tar.gz within a tar.gz.
func fromPackage(r io.Reader) ([]byte, error) {
	inner, err := member(r, "pgmq.tar.gz")
	if err != nil {
		return nil, err
	}
	file, err := member(inner, "pgmq--"+Version+".sql")
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxSize))
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", npmPackage, err)
	}
	return data, verify(data)
}

// member reads on to the first file of that base name in a tar.gz.
func member(r io.Reader, name string) (io.Reader, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", npmPackage, err)
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("unpacking %s: finding %s: %w", npmPackage, name, err)
		}
		if path.Base(header.Name) == name {
			return files, nil
		}
	}
}

func fromUpstream(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, upstream, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetching PGMQ from upstream: %w", err)
	}
	defer response.Body.Close() // only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching PGMQ from upstream: %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxSize))
	if err != nil {
		return nil, fmt.Errorf("fetching PGMQ from upstream: %w", err)
	}
	return data, verify(data)
}
