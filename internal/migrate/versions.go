package migrate

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// versionTables are created with the first migration, by the migrator that owns them. schema_versions has one row.
const versionTables = `
create table if not exists pawl.migrations (
  number int primary key,
  name text not null,
  applied_at timestamptz not null default clock_timestamp()
);
create table if not exists pawl.schema_versions (
  one boolean primary key default true check (one),
  schema_version int not null default 0,
  functions_version int not null default 0,
  oldest_binary int not null default 0
);
comment on column pawl.schema_versions.oldest_binary is
  'lowest functions_version of a binary that this database still serves';
insert into pawl.schema_versions default values on conflict do nothing`

type versions struct{ schema, functions, oldestBinary int }

// Queryer is what Check needs: a pool, a connection or a transaction.
type Queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// read returns zeroes for a database without Pawl. It never fails a transaction: a missing table is looked up first.
func read(ctx context.Context, db Queryer) (versions, error) {
	var v versions
	var there bool
	if err := db.QueryRow(ctx, `select to_regclass('pawl.schema_versions') is not null`).Scan(&there); err != nil {
		return v, fmt.Errorf("reading the schema's version: %w", err)
	}
	if !there {
		return v, nil
	}
	err := db.QueryRow(ctx, `select schema_version, functions_version, oldest_binary from pawl.schema_versions`).
		Scan(&v.schema, &v.functions, &v.oldestBinary)
	if sqlstate.Of(err) == sqlstate.InsufficientPrivilege {
		return v, fmt.Errorf("reading the schema's version: %w; grant pawl_operator to this role, pawl_orchestrator to that of an orchestrator, select on pawl.schema_versions to that of bin/worker", err)
	}
	if err != nil {
		return v, fmt.Errorf("reading the schema's version: %w", err)
	}
	return v, nil
}

// Check says whether this binary may work on the database: ErrDatabaseOlder when something is missing,
// ErrDatabaseNewer when the database no longer serves a binary this old. A newer database that still does is fine, so
// that an upgrade can migrate first and replace the binaries one by one.
func Check(ctx context.Context, db Queryer) error {
	return CheckConfig(ctx, db, Config{})
}

// CheckConfig is Check for other SQL than the binary's own.
func CheckConfig(ctx context.Context, db Queryer, config Config) error {
	config = config.withDefaults()
	migrations, err := Migrations(config.Files)
	if err != nil {
		return err
	}
	v, err := read(ctx, db)
	if err != nil {
		return err
	}
	if v.oldestBinary > config.FunctionsVersion {
		return fmt.Errorf("%w (it serves binaries from %d on, this one is %d)",
			ErrDatabaseNewer, v.oldestBinary, config.FunctionsVersion)
	}
	if v.schema < len(migrations) || v.functions < config.FunctionsVersion {
		return fmt.Errorf("%w (database: schema %d, functions %d; binary: %d, %d)",
			ErrDatabaseOlder, v.schema, v.functions, len(migrations), config.FunctionsVersion)
	}
	return nil
}
