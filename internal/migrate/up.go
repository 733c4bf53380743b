package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// lockKey of the advisory lock that every piece's transaction holds ("pawl" in ASCII).
const lockKey = 0x7061776c

// minServer is Postgres 15 as server_version_num.
const minServer = 150000

// Up brings conn's database to the binary's SQL. It may be repeated and run by several processes at once; it returns
// ErrDatabaseNewer, having changed nothing, when a newer binary was here. The connection must not be in a transaction.
func Up(ctx context.Context, conn *pgx.Conn, config Config) (Report, error) {
	u := &up{conn: conn, config: config.withDefaults()}
	if err := u.run(ctx); err != nil {
		if sqlstate.Of(err) == sqlstate.InsufficientPrivilege {
			err = fmt.Errorf("%w; migrating needs the right to create in the database, and who owns Pawl's schemas: "+
				"grant create on database %s to this role, or migrate as its owner", err, conn.Config().Database)
		}
		return u.report, fmt.Errorf("migrating the database %s: %w", conn.Config().Database, err)
	}
	return u.report, nil
}

type up struct {
	conn       *pgx.Conn
	config     Config
	migrations []Migration
	report     Report
}

func (u *up) run(ctx context.Context) error {
	var err error
	if u.migrations, err = Migrations(u.config.Files); err != nil {
		return err
	}
	if err := u.checkServer(ctx); err != nil {
		return err
	}
	if err := u.piece(ctx, func(tx pgx.Tx) error { return u.installPGMQ(ctx, tx) }); err != nil {
		return err
	}
	for i := range u.migrations {
		if err := u.piece(ctx, func(tx pgx.Tx) error { return u.migrate(ctx, tx, u.migrations[i]) }); err != nil {
			return err
		}
	}
	return u.piece(ctx, func(tx pgx.Tx) error { return u.writeFunctions(ctx, tx) })
}

func (u *up) checkServer(ctx context.Context) error {
	var number int
	err := u.conn.QueryRow(ctx, `select current_setting('server_version_num')::int`).Scan(&number)
	if err != nil {
		return fmt.Errorf("reading the server's version: %w", err)
	}
	if number < minServer {
		return fmt.Errorf("the server is Postgres %d: Pawl needs 15 or later", number/10000)
	}
	return nil
}

// piece runs f in a transaction that holds the migration lock. The lock is waited for without limit: its holder is
// another Up, which ends. Only then does lock_timeout count, for locks of the running system.
func (u *up) piece(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, u.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		lock := fmt.Sprintf(`set local lock_timeout = 0; set local statement_timeout = 0;
			select pg_advisory_xact_lock(%d);
			set local lock_timeout = %d`, lockKey, u.config.LockTimeout.Milliseconds())
		if _, err := u.conn.PgConn().Exec(ctx, lock).ReadAll(); err != nil {
			return fmt.Errorf("taking the migration lock: %w", err)
		}
		return f(tx)
	})
}

func (u *up) migrate(ctx context.Context, tx pgx.Tx, m Migration) error {
	now, err := read(ctx, tx)
	if err != nil {
		return err
	}
	if err := u.refuseNewer(now); err != nil {
		return err
	}
	u.report.SchemaVersion = max(now.schema, m.Number)
	if m.Number <= now.schema {
		return u.checkName(ctx, tx, m)
	}
	if err := u.exec(ctx, "migrations/"+m.Name, m.SQL); err != nil {
		return err
	}
	if m.Number == 1 { // the schema exists from here on
		if _, err := tx.Exec(ctx, versionTables, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("creating the version tables: %w", err)
		}
	}
	if _, err := tx.Exec(ctx, `insert into pawl.migrations (number, name) values ($1, $2)`, m.Number, m.Name); err != nil {
		return fmt.Errorf("recording migration %s: %w", m.Name, err)
	}
	if _, err := tx.Exec(ctx, `update pawl.schema_versions set schema_version = $1`, m.Number); err != nil {
		return fmt.Errorf("recording migration %s: %w", m.Name, err)
	}
	u.report.Migrations = append(u.report.Migrations, m.Name)
	u.config.Logger.Info("migration applied", "name", m.Name)
	return nil
}

// checkName catches a migration that was renamed or renumbered after it was applied somewhere.
func (u *up) checkName(ctx context.Context, tx pgx.Tx, m Migration) error {
	var name string
	err := tx.QueryRow(ctx, `select name from pawl.migrations where number = $1`, m.Number).Scan(&name)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("reading migration %d: %w", m.Number, err)
	}
	if name != m.Name {
		return fmt.Errorf("migration %d of the database is %q, the binary's is %q: this database belongs to another branch",
			m.Number, name, m.Name)
	}
	return nil
}

func (u *up) refuseNewer(now versions) error {
	if now.schema > len(u.migrations) || now.functions > u.config.FunctionsVersion {
		return fmt.Errorf("%w (database: schema %d, functions %d; binary: %d, %d)",
			ErrDatabaseNewer, now.schema, now.functions, len(u.migrations), u.config.FunctionsVersion)
	}
	return nil
}
