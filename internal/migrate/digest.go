package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
)

// Digest of the files that match the patterns, names included: two trees have the same one only if they write the same
// database.
func Digest(files fs.FS, patterns ...string) (string, error) {
	hash := sha256.New()
	for _, pattern := range patterns {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", pattern, err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return "", fmt.Errorf("reading %s: %w", name, err)
			}
			fmt.Fprintf(hash, "%s %d\n%s\n", name, len(text), text)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// FunctionsDigest is what functions.sum records beside the number: of functions and triggers, which only a higher
// number writes into a database.
func FunctionsDigest(files fs.FS) (string, error) {
	return Digest(files, "functions/*.sql", "triggers/*.sql")
}
