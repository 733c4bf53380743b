package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// writeFunctions applies functions, then triggers, when the binary's number is higher than the database's. Bodies are
// not checked while they are created, so that their order does not matter.
func (u *up) writeFunctions(ctx context.Context, tx pgx.Tx) error {
	now, err := read(ctx, tx)
	if err != nil {
		return err
	}
	if err := u.refuseNewer(now); err != nil {
		return err
	}
	u.report.FunctionsVersion = u.config.FunctionsVersion
	if now.functions == u.config.FunctionsVersion {
		return nil
	}
	if _, err := tx.Exec(ctx, `set local check_function_bodies = off`); err != nil {
		return fmt.Errorf("writing functions: %w", err)
	}
	for _, dir := range []string{"functions", "triggers"} {
		names, err := fs.Glob(u.config.Files, dir+"/*.sql")
		if err != nil {
			return fmt.Errorf("listing %s: %w", dir, err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(u.config.Files, name)
			if err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
			if err := u.exec(ctx, name, string(text)); err != nil {
				return err
			}
		}
	}
	_, err = tx.Exec(ctx, `update pawl.schema_versions
		set functions_version = $1, oldest_binary = greatest(oldest_binary, $2)`,
		u.config.FunctionsVersion, u.config.OldestBinary)
	if err != nil {
		return fmt.Errorf("recording functions %d: %w", u.config.FunctionsVersion, err)
	}
	u.report.Functions = true
	u.config.Logger.Info("functions written", "version", u.config.FunctionsVersion)
	return nil
}

// exec runs a file of several statements within the transaction; an error names the file and the line.
func (u *up) exec(ctx context.Context, name, text string) error {
	_, err := u.conn.PgConn().Exec(ctx, text).ReadAll()
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Position > 0 {
		before := []rune(text)[:min(int(pgErr.Position)-1, len([]rune(text)))]
		return fmt.Errorf("applying %s:%d: %w", name, 1+strings.Count(string(before), "\n"), err)
	}
	if err != nil {
		return fmt.Errorf("applying %s: %w", name, err)
	}
	return nil
}
