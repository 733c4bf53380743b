package pgtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/pgmqsql"
	"github.com/pawl-dev/pawl/sql"
)

// templateLock serializes the making of templates; any number works that nobody else uses.
const templateLock = 0x7061776c7474

// keptTemplates of earlier states of the SQL files.
const keptTemplates = 5

// makeTemplate makes the database with everything in it, unless it is there: under another name, so that a crash
// leaves nothing that looks complete.
func (s *server) makeTemplate(ctx context.Context) (string, error) {
	digest, err := migrate.Digest(sql.Files, "migrations/*.sql", "functions/*.sql", "triggers/*.sql", "functions.sum")
	if err != nil {
		return "", err
	}
	name := "pawl_template_" + digest[:16]
	conn, err := pgx.Connect(ctx, s.base)
	if err != nil {
		return "", fmt.Errorf("connecting to the test server: %w", err)
	}
	defer conn.Close(ctx) // also gives back the lock
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, templateLock); err != nil {
		return "", fmt.Errorf("waiting for the test template: %w", err)
	}
	var there bool
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&there)
	if err != nil || there {
		return name, err
	}
	if err := s.dropOldTemplates(ctx); err != nil {
		return "", err
	}
	half := name + "_half"
	if err := s.drop(ctx, half); err != nil {
		return "", err
	}
	if err := s.create(ctx, half, "template0"); err != nil {
		return "", err
	}
	if err := fill(ctx, s.url(half)); err != nil {
		return "", err
	}
	return name, s.alone(ctx, fmt.Sprintf(`alter database %s rename to %s`, half, name))
}

func fill(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to the test template: %w", err)
	}
	defer conn.Close(ctx) // closed below; here for the paths with an error
	if _, err := migrate.Up(ctx, conn, migrate.Config{PGMQ: pgmqsql.Ensure}); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `vacuum (freeze, analyze)`); err != nil { // nothing for autovacuum to do in clones
		return fmt.Errorf("vacuuming the test template: %w", err)
	}
	return conn.Close(ctx)
}

func (s *server) dropOldTemplates(ctx context.Context) error {
	rows, err := s.admin.Query(ctx, `select datname from pg_database where datname like 'pawl\_template\_%'
		order by oid desc offset $1`, keptTemplates)
	if err != nil {
		return fmt.Errorf("looking for old test templates: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("looking for old test templates: %w", err)
	}
	for _, name := range names {
		if err := s.drop(ctx, name); err != nil {
			return fmt.Errorf("dropping an old test template: %w", err)
		}
	}
	return nil
}
