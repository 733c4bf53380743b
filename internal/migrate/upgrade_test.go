package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/sql"
)

// newer is a binary with the same SQL under a higher number.
var newer = migrate.Config{FunctionsVersion: sql.FunctionsVersion + 1}

func TestAnUpgradeDoesNotWaitForThoseWhoWrite(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn, writer := connect(t, url), connect(t, url)
	_, err := conn.Exec(t.Context(), "select pawl.install_queue('work_queue'), pawl.install_roles()")
	require.NoError(t, err)
	open, err := writer.Begin(t.Context())
	require.NoError(t, err)
	_, err = open.Exec(t.Context(), `lock table pawl.tasks, pawl.steps, pawl.templates, pawl.queues, pgmq.q_work_queue, pgmq.q_orchestration_task_requests,
		pgmq.q_orchestration_step_results in row exclusive mode`)
	require.NoError(t, err)
	report, err := migrate.Up(t.Context(), conn, newer)
	require.NoError(t, err)
	require.True(t, report.Functions)
	require.NoError(t, open.Commit(t.Context()))
}

func TestAnUpgradeMendsTriggers(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	const triggers = `select pg_get_triggerdef(oid) || ' ' || tgenabled::text from pg_trigger where not tgisinternal
		and tgrelid in ('pawl.tasks'::regclass, 'pawl.steps'::regclass, 'pawl.templates'::regclass, 'pgmq.q_work_queue'::regclass,
		'pgmq.q_orchestration_step_results'::regclass) order by 1`
	list := func(query string) (found []string) {
		rows, err := conn.Query(t.Context(), query)
		require.NoError(t, err)
		for rows.Next() {
			var text string
			require.NoError(t, rows.Scan(&text))
			found = append(found, text)
		}
		require.NoError(t, rows.Err())
		return found
	}
	_, err := conn.Exec(t.Context(), "select pawl.install_queue('work_queue')")
	require.NoError(t, err)
	whole := list(triggers)
	require.Len(t, whole, 7)
	const rows = "select xmin::text from pg_trigger where tgrelid in ('pawl.tasks'::regclass, 'pgmq.q_work_queue'::regclass) order by oid"
	kept := list(rows)
	_, err = migrate.Up(t.Context(), conn, newer)
	require.NoError(t, err)
	require.Equal(t, kept, list(rows), "what is as it should be is left alone")

	_, err = conn.Exec(t.Context(), `drop trigger guard_insert on pawl.steps; alter table pawl.tasks disable trigger guard_update;
		create or replace trigger check_claims before insert on pawl.templates for each row when (false) execute function pawl.check_template_claims();
		create or replace trigger pawl_announce after insert on pgmq.q_work_queue for each statement execute function pawl.announce('elsewhere');
		drop trigger pawl_announce on pgmq.q_orchestration_step_results`)
	require.NoError(t, err)
	_, err = migrate.Up(t.Context(), conn, migrate.Config{FunctionsVersion: sql.FunctionsVersion + 2})
	require.NoError(t, err)
	require.Equal(t, whole, list(triggers))
}

func TestAnUpgradeLocksNothingForEachQueue(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	_, err := conn.Exec(t.Context(), "select pawl.install_queue('queue_' || n) from generate_series(1, 20) n")
	require.NoError(t, err)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	const held = "select count(*) from pg_locks where pid = pg_backend_pid()"
	var before, after int
	_, err = tx.Exec(t.Context(), "select pawl.write_queue_functions('queue_1')")
	require.NoError(t, err)
	require.NoError(t, tx.QueryRow(t.Context(), held).Scan(&before))
	_, err = tx.Exec(t.Context(), "select pawl.write_queue_functions('queue_' || n) from generate_series(1, 20) n")
	require.NoError(t, err)
	require.NoError(t, tx.QueryRow(t.Context(), held).Scan(&after))
	require.Less(t, after-before, 20, "a server has room for some thousand locks")
}

func TestAQueuesFunctionsAreDroppedWhenTheirTypeIsAnother(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	_, err := conn.Exec(t.Context(), `select pawl.install_queue('work_queue');
		drop function pawl_queues.read_work_queue; drop function pawl_queues.delete_work_queue;
		create function pawl_queues.read_work_queue(quantity int, lease_ms bigint, max_bytes bigint) returns setof pawl.delivery language sql as 'select null::pawl.delivery';
		create function pawl_queues.delete_work_queue(ids bigint[], read_counts int[]) returns int language sql as 'select 1'`)
	require.NoError(t, err)
	_, err = migrate.Up(t.Context(), conn, newer)
	require.NoError(t, err)
	var taken int
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from unnest(pawl_queues.read_work_queue(1, 1, 1))").Scan(&taken))
	require.Zero(t, taken)
}
