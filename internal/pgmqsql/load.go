package pgmqsql

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pawl-dev/pawl/internal/cachedir"
)

// Version of PGMQ that is fetched, and that Pawl's tests run against.
const Version = "1.11.1"

// Sha256 of upstream's pgmq--1.11.1.sql.
const Sha256 = "71cf82eaf1d81394a99f56ddf184c3dc8bf5eeb6f204ef9bad6e146e141eca2e"

// EnvFile names the environment variable with the path of a PGMQ SQL file of the user's own choice. Its checksum is
// not looked at: whoever sets it vouches for the file.
const EnvFile = "PAWL_PGMQ_SQL"

// ErrMissing says that no SQL of PGMQ is on this machine.
var ErrMissing = errors.New("PGMQ's SQL is not on this machine: install the server's pgmq extension, run scripts/setup, or set " + EnvFile)

// Path of the cached file, whether it is there or not.
func Path() (string, error) {
	return cachedir.Path("pgmq--" + Version + ".sql")
}

// Load returns PGMQ's SQL from EnvFile, else from the cache; ErrMissing when it is in neither.
func Load() (string, error) {
	if file := os.Getenv(EnvFile); file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading PGMQ's SQL: %w; correct or unset %s", err, EnvFile)
		}
		return string(data), nil
	}
	file, err := Path()
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrMissing
	}
	if err != nil {
		return "", fmt.Errorf("reading PGMQ's SQL: %w", err)
	}
	if err := verify(data); err != nil {
		return "", fmt.Errorf("checking %s: %w; delete the file and run scripts/setup", file, err)
	}
	return string(data), nil
}

func verify(data []byte) error {
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != Sha256 {
		return fmt.Errorf("sha-256 is %s, want %s (pgmq--%s.sql)", got, Sha256, Version)
	}
	return nil
}
