package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/test/kit"
)

// strict examines at rest, without grace.
var strict = Config{AtRest: true, Grace: -1}

func newWorld(t *testing.T) (*kit.Kit, kit.World, pgx.Tx) {
	t.Helper()
	tx := pgtest.Tx(t)
	k := &kit.Kit{TB: t, DB: tx}
	return k, kit.NewWorld(k), tx
}

func TestNothingIsFoundInAHealthyDatabase(t *testing.T) {
	t.Parallel()
	_, _, tx := newWorld(t)
	report, err := examine(t.Context(), tx, strict, mustChecks(t))
	require.NoError(t, err)
	for _, v := range report.Violations {
		if v.Kind != Advice {
			t.Errorf("%s %s: %v", v.ID, v.Says, v.Samples)
		}
	}
	require.Greater(t, report.Checked, 60)
}

func TestQueuesThatSomebodyWorksOnNeedNoAdvice(t *testing.T) {
	t.Parallel()
	k, _, tx := newWorld(t)
	k.Exec("select pawl.beat_processor(gen_random_uuid(), 'orchestrator', 'box', 7, '1')")
	k.Exec(`select pgmq.send('orchestration_task_requests', '{"template": "a/b"}')`)
	k.Exec("update pgmq.q_work_queue set vt = clock_timestamp() - interval '1 h' where msg_id = (select min(msg_id) from pgmq.q_work_queue)")
	k.Exec("update pgmq.q_paused_queue set vt = clock_timestamp() - interval '1 h'")
	k.Exec("update pawl.dead_letters set status = 'dropped', ended_at = pawl.now()")
	report, err := examine(t.Context(), tx, Config{}, mustChecks(t))
	require.NoError(t, err)
	for _, v := range report.Violations {
		require.NotContains(t, []string{"H15", "H16", "H17"}, v.ID, "%v", v.Samples)
	}
}

func mustChecks(t *testing.T) []Check {
	t.Helper()
	checks, err := Checks()
	require.NoError(t, err)
	return checks
}

// Every invariant has a violation that it must find. In the statements, words such as :Running are tasks of the world.
func TestEveryCheckFindsItsViolation(t *testing.T) {
	t.Parallel()
	k, world, tx := newWorld(t)
	replace := names(world)
	for _, check := range mustChecks(t) {
		t.Run(check.ID, func(t *testing.T) {
			mutation, ok := mutations[check.ID]
			if unseen[check.ID] {
				require.False(t, ok)
				return
			}
			require.True(t, ok, "a check that cannot fail is worthless: seed a violation of %s", check.ID)
			inside := &kit.Kit{TB: t, DB: tx}
			inside.Exec("savepoint healthy")
			defer k.Exec("rollback to savepoint healthy")
			inside.Exec("set local session_replication_role = replica") // the guards sleep
			for statement := range strings.SplitSeq(replace.Replace(mutation), ";;") {
				inside.Exec(statement)
			}
			report, err := examine(t.Context(), tx, strict, []Check{check})
			require.NoError(t, err)
			require.Len(t, report.Violations, 1, "%s does not see: %s", check.ID, mutation)
			require.NotEmpty(t, report.Violations[0].Samples)
		})
	}
	for id := range mutations {
		require.Contains(t, fmt.Sprint(ids(mustChecks(t))), " "+id+" ")
	}
}

func ids(checks []Check) string {
	all := " "
	for _, c := range checks {
		all += c.ID + " "
	}
	return all
}

func names(w kit.World) *strings.Replacer {
	return strings.NewReplacer(
		":Complete", "'"+w.Complete.String()+"'", ":Failed", "'"+w.Failed.String()+"'", ":Blocked", "'"+w.Blocked.String()+"'",
		":Retrying", "'"+w.Retrying.String()+"'", ":Running", "'"+w.Running.String()+"'", ":Enqueued", "'"+w.Enqueued.String()+"'",
		":Later", "'"+w.Later.String()+"'", ":Cancelled", "'"+w.Cancelled.String()+"'", ":Retried", "'"+w.Retried.String()+"'",
		":Holding", "'"+w.Holding.String()+"'", ":Waiting", "'"+w.Waiting.String()+"'", ":Claiming", "'"+w.Claiming.String()+"'",
		":Slot", "'"+w.Slot.String()+"'", ":Gated", "'"+w.Gated.String()+"'", ":Paused", "'"+w.Paused.String()+"'")
}

func TestReadsItsOwnSnapshotAndWritesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t)
	kit.NewWorld(&kit.Kit{TB: t, DB: pool})
	report, err := Examine(t.Context(), pool, strict)
	require.NoError(t, err)
	require.True(t, report.Healthy(), "%+v", report.Violations)
	var text strings.Builder
	Print(&text, report)
	require.Contains(t, text.String(), "at rest: all hold")

	require.Contains(t, text.String(), "H17 no dead letter waits for a person")
	require.Contains(t, text.String(), "all hold; above is advice")

	_, err = pool.Exec(t.Context(), "delete from pgmq.q_work_queue")
	require.NoError(t, err)
	report, err = Examine(t.Context(), pool, Config{})
	require.NoError(t, err)
	require.False(t, report.Healthy())
	require.Equal(t, "C1", report.Violations[0].ID)
	text.Reset()
	Print(&text, report)
	require.Contains(t, text.String(), "C1 an enqueued step has the message of its attempt")
	require.Contains(t, text.String(), "NOT all hold")
}

func TestServerChecksFindWhatOthersDo(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t)
	other, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer other.Rollback(t.Context())
	_, err = other.Exec(t.Context(), "create table of_another_session (n int)")
	require.NoError(t, err)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	for _, check := range mustChecks(t) {
		if !unseen[check.ID] {
			continue
		}
		weak := check
		weak.query = strings.ReplaceAll(check.query, lowered[check.ID][0], lowered[check.ID][1])
		require.NotEqual(t, check.query, weak.query, check.ID)
		report, err := examine(t.Context(), tx, Config{}, []Check{check, weak})
		require.NoError(t, err)
		require.Len(t, report.Violations, 1, check.ID)
		require.True(t, report.Healthy(), "advice fails nothing")
	}
}
