package cli

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/migrate"
)

func (a *app) migrateCommand() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database to this binary's tables and functions",
		Long: `Brings the database to this binary's tables and functions, in schema pawl, and installs PGMQ when it is missing.

It may run while orchestrators and workers do, on several machines at once, and again: what is there is left alone.
A database that a newer pawl has migrated is refused.`,
		Example: `  pawl migrate
  pawl migrate --check     # changes nothing; exit code 6 when there is something to do`,
		Args: cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			if check {
				return a.with(ctx, func(*database) error {
					if a.json {
						return a.printJSON(map[string]bool{"up_to_date": true})
					}
					a.say("The database is up to date.")
					return nil
				})
			}
			pool, err := a.connect(ctx)
			if err != nil {
				return err
			}
			defer pool.Close()
			report, err := migrateDatabase(ctx, pool)
			if err != nil {
				return err
			}
			return a.printMigration(report)
		}),
	}
	c.Flags().BoolVar(&check, "check", false, "only say whether the database is up to date")
	return c
}

func migrateDatabase(ctx context.Context, pool *pgxpool.Pool) (migrate.Report, error) {
	var report migrate.Report
	err := pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		var err error
		report, err = migrate.Up(ctx, conn.Conn(), migrate.Config{})
		return err
	})
	return report, err // migrate says what it did
}

func (a *app) printMigration(r migrate.Report) error {
	if a.json {
		return a.printJSON(map[string]any{
			"pgmq": r.PGMQ, "migrations": r.Migrations, "functions": r.Functions,
			"schema_version": r.SchemaVersion, "functions_version": r.FunctionsVersion,
		})
	}
	if r.PGMQ != "" {
		a.say("PGMQ installed (%s)", r.PGMQ)
	}
	for _, name := range r.Migrations {
		a.say("applied %s", name)
	}
	if r.Functions {
		a.say("functions and triggers written")
	}
	if r.PGMQ == "" && len(r.Migrations) == 0 && !r.Functions {
		a.say("nothing to do")
	}
	a.say("schema %d, functions %d", r.SchemaVersion, r.FunctionsVersion)
	return nil
}
