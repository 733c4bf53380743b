package migrate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// small is a tree with one of everything; the function is created before what it calls exists.
func small() fstest.MapFS {
	return fstest.MapFS{
		"migrations/0001_schema.sql": file(`create schema pawl; create table pawl.things (a int);`),
		"functions/a.sql":            file(`create or replace function pawl.a() returns int language sql as 'select pawl.b()'`),
		"functions/b.sql":            file(`create or replace function pawl.b() returns int language sql as 'select 1'`),
		"triggers/t.sql": file(`create or replace function pawl.t() returns trigger language plpgsql as 'begin return new; end';
			create or replace trigger t before insert on pawl.things for each row execute function pawl.t();`),
	}
}

func config(files fstest.MapFS, functions int) migrate.Config {
	return migrate.Config{
		Files: files, FunctionsVersion: functions, OldestBinary: 1,
		PGMQ: func(context.Context) (string, error) { return `create schema pgmq`, nil },
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestUpAppliesEverythingOnce(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.EmptyURL(t))
	require.ErrorIs(t, migrate.CheckConfig(t.Context(), conn, config(small(), 3)), migrate.ErrDatabaseOlder)
	report, err := migrate.Up(t.Context(), conn, config(small(), 3))
	require.NoError(t, err)
	require.NotEmpty(t, report.PGMQ)
	require.Equal(t, []string{"0001_schema.sql"}, report.Migrations)
	require.True(t, report.Functions)
	require.NoError(t, migrate.CheckConfig(t.Context(), conn, config(small(), 3)))

	report, err = migrate.Up(t.Context(), conn, config(small(), 3))
	require.NoError(t, err)
	require.Equal(t, migrate.Report{SchemaVersion: 1, FunctionsVersion: 3}, report)
}

func TestUpAddsWhatIsNewAndRefusesToGoBack(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.EmptyURL(t))
	_, err := migrate.Up(t.Context(), conn, config(small(), 1))
	require.NoError(t, err)
	newer := small()
	newer["migrations/0002_more.sql"] = file(`create table pawl.more ()`)
	newer["functions/b.sql"] = file(`create or replace function pawl.b() returns int language sql as 'select 2'`)
	next := config(newer, 2)
	next.OldestBinary = 2
	report, err := migrate.Up(t.Context(), conn, next)
	require.NoError(t, err)
	require.Equal(t, migrate.Report{Migrations: []string{"0002_more.sql"}, Functions: true, SchemaVersion: 2, FunctionsVersion: 2}, report)
	var result int
	require.NoError(t, conn.QueryRow(t.Context(), `select pawl.a()`).Scan(&result))
	require.Equal(t, 2, result)

	_, err = migrate.Up(t.Context(), conn, config(small(), 1))
	require.ErrorIs(t, err, migrate.ErrDatabaseNewer)
	require.ErrorIs(t, migrate.CheckConfig(t.Context(), conn, config(small(), 1)), migrate.ErrDatabaseNewer)
}

func TestCheckLetsAnOlderBinaryWorkThatTheDatabaseStillServes(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.EmptyURL(t))
	_, err := migrate.Up(t.Context(), conn, config(small(), 5)) // oldest binary 1
	require.NoError(t, err)
	require.NoError(t, migrate.CheckConfig(t.Context(), conn, config(small(), 4)))
}

func TestFailingMigrationLeavesNothingAndNamesItsLine(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.EmptyURL(t))
	broken := small()
	broken["migrations/0002_broken.sql"] = file("create table pawl.half ();\n\nselect nothing_like_it;\n")
	_, err := migrate.Up(t.Context(), conn, config(broken, 1))
	require.ErrorContains(t, err, "applying migrations/0002_broken.sql:3")
	var half bool
	require.NoError(t, conn.QueryRow(t.Context(), `select to_regclass('pawl.half') is not null`).Scan(&half))
	require.False(t, half)

	report, err := migrate.Up(t.Context(), conn, config(small(), 1)) // goes on where it stopped
	require.NoError(t, err)
	require.Equal(t, 1, report.SchemaVersion)
}

func TestUpRefusesARenamedMigration(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.EmptyURL(t))
	_, err := migrate.Up(t.Context(), conn, config(small(), 1))
	require.NoError(t, err)
	renamed := small()
	renamed["migrations/0001_other.sql"] = renamed["migrations/0001_schema.sql"]
	delete(renamed, "migrations/0001_schema.sql")
	_, err = migrate.Up(t.Context(), conn, config(renamed, 1))
	require.ErrorContains(t, err, "another branch")
}

func TestMigrationsHaveNoGap(t *testing.T) {
	t.Parallel()
	gap := small()
	gap["migrations/0003_late.sql"] = file(``)
	_, err := migrate.Migrations(gap)
	require.ErrorContains(t, err, "must begin with 0002_")
}

func TestConcurrentUpsApplyEachPieceOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	many := small()
	for i := 2; i <= 6; i++ {
		many[fmt.Sprintf("migrations/%04d_more.sql", i)] = file(fmt.Sprintf(`create table pawl.more_%d ()`, i))
	}
	var mu sync.Mutex
	var applied, functions int
	var group sync.WaitGroup
	for range 6 {
		conn := connect(t, url)
		group.Go(func() {
			report, err := migrate.Up(t.Context(), conn, config(many, 1))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			applied += len(report.Migrations)
			if report.Functions {
				functions++
			}
		})
	}
	group.Wait()
	require.Equal(t, 6, applied)
	require.Equal(t, 1, functions)
}

func TestMigrationGivesUpWaitingForALock(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	conn, busy := connect(t, url), connect(t, url)
	_, err := migrate.Up(t.Context(), conn, config(small(), 1))
	require.NoError(t, err)
	_, err = busy.Exec(t.Context(), `begin; select from pawl.things`)
	require.NoError(t, err)
	next := small()
	next["migrations/0002_alter.sql"] = file(`alter table pawl.things add b int`)
	impatient := config(next, 1)
	impatient.LockTimeout = 50 * time.Millisecond
	_, err = migrate.Up(t.Context(), conn, impatient)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "55P03", pgErr.Code)
}
