package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// minPGMQ is the oldest version of the extension that is taken: 1.10.1 gives new queues the column last_read_at.
var minPGMQ = []int{1, 10, 1}

// installPGMQ makes the schema pgmq when it is missing: from the server's extension when that is offered, recent
// enough and permitted, else from upstream's SQL. An existing pgmq is never touched.
func (u *up) installPGMQ(ctx context.Context, tx pgx.Tx) error {
	var missing bool
	if err := tx.QueryRow(ctx, `select to_regnamespace('pgmq') is null`).Scan(&missing); err != nil {
		return fmt.Errorf("looking for PGMQ: %w", err)
	}
	if !missing {
		return nil
	}
	done, err := u.createExtension(ctx, tx)
	if err != nil || done {
		return err
	}
	text, err := u.config.PGMQ(ctx)
	if err != nil {
		return fmt.Errorf("installing PGMQ: %w", err)
	}
	if err := u.exec(ctx, "pgmq.sql", text); err != nil {
		return fmt.Errorf("installing PGMQ: %w", err)
	}
	u.report.PGMQ = "sql"
	u.config.Logger.Info("PGMQ installed from upstream's SQL")
	return nil
}

func (u *up) createExtension(ctx context.Context, tx pgx.Tx) (bool, error) {
	var version string
	err := tx.QueryRow(ctx, `select default_version from pg_available_extensions
		where name = 'pgmq' and string_to_array(substring(default_version from '^[0-9.]*[0-9]'), '.')::int[] >= $1`, minPGMQ).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for PGMQ's extension: %w", err)
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `create extension pgmq`)
		return err
	})
	if sqlstate.Of(err) == sqlstate.InsufficientPrivilege { // not permitted: the SQL needs no superuser
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating the extension pgmq: %w", err)
	}
	u.report.PGMQ = "extension " + version
	u.config.Logger.Info("PGMQ installed", "extension", version)
	return true, nil
}
