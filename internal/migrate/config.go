package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pawl-dev/pawl/internal/pgmqsql"
	"github.com/pawl-dev/pawl/sql"
)

// Config of Up and Check. The zero value applies the SQL embedded in the binary.
type Config struct {
	// Files holds migrations/NNNN_name.sql, functions/*.sql and triggers/*.sql. Default: sql.Files.
	Files fs.FS
	// FunctionsVersion of Files. Default: sql.FunctionsVersion.
	FunctionsVersion int
	// OldestBinary is the lowest FunctionsVersion of a binary that works after Up. Default: sql.OldestBinary.
	OldestBinary int
	// PGMQ returns upstream's SQL, for servers without the extension. Default: pgmqsql.Load, which reads
	// PAWL_PGMQ_SQL or the cache and never the network.
	PGMQ func(context.Context) (string, error)
	// LockTimeout of each migration: how long a statement waits for a lock of the running system. Default: 5 s.
	LockTimeout time.Duration
	// Logger gets one line per piece applied. Default: none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Files == nil {
		c.Files = sql.Files
	}
	if c.FunctionsVersion == 0 {
		c.FunctionsVersion = sql.FunctionsVersion
	}
	if c.OldestBinary == 0 {
		c.OldestBinary = sql.OldestBinary
	}
	if c.PGMQ == nil {
		c.PGMQ = func(context.Context) (string, error) { return pgmqsql.Load() }
	}
	if c.LockTimeout == 0 {
		c.LockTimeout = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Report says what Up found and did.
type Report struct {
	PGMQ             string   // "extension 1.11.1" or "sql" when Up installed it, empty when it was there
	Migrations       []string // files applied, in order
	Functions        bool     // functions and triggers were written
	SchemaVersion    int      // the database's, after Up
	FunctionsVersion int      // the database's, after Up
}

// ErrDatabaseNewer says that a newer Pawl has migrated this database.
var ErrDatabaseNewer = errors.New("the database was migrated by a newer Pawl: run a newer binary")

// ErrDatabaseOlder says that the database lacks something this binary needs.
var ErrDatabaseOlder = errors.New("the database is older than this binary: run `pawl migrate`")

// Migration is one file of migrations/.
type Migration struct {
	Number int
	Name   string // the file's name
	SQL    string
}

// Migrations reads the migrations in files, in order; numbers must run from 1 without a gap.
func Migrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("listing migrations: %w", err)
	}
	found := make([]Migration, 0, len(names))
	for i, name := range names { // Glob sorts, and four digits sort as numbers
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading migration: %w", err)
		}
		m := Migration{Name: name[len("migrations/"):], SQL: string(text)}
		if _, err := fmt.Sscanf(m.Name, "%04d_", &m.Number); err != nil || m.Number != i+1 {
			return nil, fmt.Errorf("reading migration %s: its name must begin with %04d_", name, i+1)
		}
		found = append(found, m)
	}
	return found, nil
}
