package sql_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/sql"
)

// R4: whoever looks for any work takes what is free and waits for nobody. A stranger holds every row there is; what waited
// for one would end with 55P03.
func TestWhoLooksForWorkWaitsForNobody(t *testing.T) {
	k := newCommittingKit(t)
	k.shop()
	k.Template("shop/old", object{"retention_ms": 0}, step("a", object{"queue": "old_queue"}))
	k.Template("shop/gated", nil, step("a", object{"queue": "gated_queue"}))
	k.Submit("shop/old", object{"key": "old"})
	k.work("old_queue")
	k.configure("gated_queue", object{"max_concurrency": 1})
	k.Submit("shop/gated")
	k.Submit("shop/flaky")
	require.True(k, k.Report(queue, k.ClaimOne(queue), object{"status": "failed", "error": object{"type": "boom", "retry_after": 0}}))
	k.Submit("shop/diamond")
	held := k.ClaimOne(queue)
	k.Submit("shop/diamond") // to be claimed
	k.Exec("select pgmq.send('orchestration_step_results', '{}')")

	stranger := k.begin()
	for _, table := range []string{"pawl.tasks", "pawl.steps", "pawl.held_steps", "pawl.queues", "pawl.task_identities", "pawl.absorbed",
		"pawl.dead_letters", "pgmq.q_work_queue", "pgmq.q_orchestration_step_results", "pgmq.q_orchestration_step_enqueues"} {
		stranger.Exec("select from " + table + " for update")
	}
	mine := k.begin()
	mine.Exec("set local lock_timeout = '10s'")
	for _, look := range []string{
		"select pawl.claim_steps('work_queue', 10, 'w')",
		"select pawl_queues.read_work_queue(10, 1000, 100000)",
		"select pawl_queues.read_orchestration_step_results(10, 1000, 100000)",
		"select pawl.fire_due(10, 'p')", "select pawl.release_held(10, 'p')", "select pawl.sweep(10, 'p')",
		"select pawl.reconcile('p', 100, '0')", "select pawl.get_next_ready_tasks(10)", "select pawl.revert_stale_claims('billing', 'j')",
		"select pawl.stuck_tasks()",
	} {
		mine.Exec(look)
	}
	mine.commit()
	stranger.commit()

	// Who reports, beats or hands back takes no task's row.
	stranger = k.begin()
	stranger.Exec("select from pawl.tasks for update")
	mine = k.begin()
	mine.Exec("set local lock_timeout = '10s'")
	mine.Exec("select pawl.extend_leases('work_queue', $1)", leases(held))
	mine.Exec("select pawl.release_steps('work_queue', $1)", leases(held))
	mine.Exec("select pawl.report_steps('work_queue', $1, 'w')", reportsOf("complete", held))
	mine.commit()
	stranger.commit()
}

// functions of sql/functions: name to text without comments.
func functionTexts(t *testing.T) map[string]string {
	t.Helper()
	names, err := fs.Glob(sql.Files, "functions/*.sql")
	require.NoError(t, err)
	comment := regexp.MustCompile(`--[^\n]*`)
	all := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(sql.Files, name)
		require.NoError(t, err)
		all[strings.TrimSuffix(strings.TrimPrefix(name, "functions/"), ".sql")] = comment.ReplaceAllString(string(text), "")
	}
	return all
}

// R6: decisions are made by pawl.now(), read once per function. The server's other clocks run leases, which are PGMQ's
// (clock_timestamp against vt and enqueued_at), date a record (now), and tell how long a statement has waited.
func TestOneClockDecides(t *testing.T) {
	t.Parallel()
	inOneStatement := []string{"beat_processor"}
	datesARecord := []string{"check_entity"}
	waited := regexp.MustCompile(`clock_timestamp\(\) - statement_timestamp\(\) > interval '1 s'`)
	compared := regexp.MustCompile(`(\w+)\s*[<>]=?\s*clock_timestamp\(\)`)
	bare := regexp.MustCompile(`(?:^|[^.\w])(now\(\)|current_timestamp|localtimestamp|statement_timestamp|transaction_timestamp)`)
	for name, text := range functionTexts(t) {
		if name == "now" {
			continue
		}
		if !slices.Contains(inOneStatement, name) {
			require.LessOrEqual(t, strings.Count(text, "pawl.now()"), 1, "%s reads the clock more than once", name)
		}
		for _, c := range compared.FindAllStringSubmatch(text, -1) {
			require.Contains(t, []string{"vt", "visible_at", "enqueued_at"}, c[1], "%s: %s", name, c[0])
		}
		if !slices.Contains(datesARecord, name) {
			require.Empty(t, bare.FindString(waited.ReplaceAllString(text, "")), name)
		}
	}
}

// R6: every time is a timestamptz.
func TestTimesHaveTheirZone(t *testing.T) {
	k := newKit(t)
	require.Empty(t, list[string](k, `select attrelid::regclass || '.' || attname from pg_attribute a join pg_class c on c.oid = a.attrelid
		where c.relnamespace = 'pawl'::regnamespace and c.relkind = 'r' and (atttypid in ('timestamp'::regtype, 'time'::regtype, 'date'::regtype)
			or attname ~ '(_at|_since|_until)$' and atttypid <> 'timestamptz'::regtype)`))
}
