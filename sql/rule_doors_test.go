package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// R10 at the doors of SQL: what nobody would look at is refused, and nothing of the rest is done.
func TestUnknownSettingsAreRefusedAtEveryDoor(t *testing.T) {
	k := newKit(t)
	k.shop()
	k.Exec("create table invoices (number text primary key, status text not null, version int not null default 1)")
	for door, c := range map[string]struct {
		code string
		call call
	}{
		"a queue's setting":       {"PW024", calling(`select pawl.configure_queue('work_queue', '{"paused": true, "rat_limit": "5/sec"}', 'ann', 'r')`)},
		"a template's setting":    {"PW024", calling(`select pawl.configure_template('shop', 'one', '{"retention": "1d", "retries": 3}', 'ann', 'r')`)},
		"the engine's setting":    {"PW024", calling(`select pawl.configure_engine('{"staged": true, "stagd": true}', 'ann', 'r')`)},
		"a dead letter's filter":  {"PW024", calling(`select pawl.redrive_dead_letters('{"que": "work_queue"}', 10, null, 'ann', 'r')`)},
		"a dropped one's filter":  {"PW024", calling(`select pawl.drop_dead_letters('{"que": "work_queue"}', 10, 'ann', 'r')`)},
		"an entity's field":       {"PW030", calling("select pawl.register_entity('invoice', $1, 'ann', 'r')", entity(object{"colour": "red"}))},
		"a state that is none":    {"PW024", calling(`select pawl.configure_template('shop', 'one', '{"stuck_after": {"walking": "1h"}}', 'ann', 'r')`)},
		"an unknown template":     {"PW020", calling(`select pawl.configure_template('shop', 'on', '{"retention": "1d"}', 'ann', 'r')`)},
		"a misspelt queue":        {"PW010", calling("select pawl.claim_steps('work_quue', 1, 'w')")},
		"a report's queue":        {"PW010", calling("select pawl.report_steps('work_quue', '[]', 'w')")},
		"a heartbeat's queue":     {"PW010", calling("select pawl.extend_leases('work_quue', '[]')")},
		"a paused queue's name":   {"PW010", calling("select pawl.pause_queue('work_quue', 'ann', 'r')")},
		"an engine's queue":       {"PW010", calling(`select pawl.configure_queue('orchestration_step_results', '{"paused": true}', 'ann', 'r')`)},
		"nobody":                  {"PW023", calling("select pawl.pause_queue('work_queue', '', 'r')")},
		"no reason":               {"PW023", calling("select pawl.pause_queue('work_queue', 'ann', ' ')")},
		"no worker":               {"PW014", calling("select pawl.claim_steps('work_queue', 1, '')")},
		"a report's field":        {"PW016", calling(`select pawl.report_steps('work_queue', '[{"msg_id": 1, "read_ct": 1, "status": "complete", "retry_afer": 3}]', 'w')`)},
		"an option of a claim":    {"PW024", calling(`select pawl.claim_steps('work_queue', 1, 'w', '{"leese_ms": 5}')`)},
		"a report without status": {"PW016", calling(`select pawl.report_steps('work_queue', '[{"msg_id": 1, "read_ct": 1}]', 'w')`)},
	} {
		before := k.content()
		refused := k.refused(c.code, c.call.sql, c.call.args...)
		require.NotEmpty(t, refused.Message, door)
		require.NotEmpty(t, refused.Hint, "%s: what to do next", door)
		require.Equal(t, before, k.content(), door)
	}
}

// R10: a result sent with PGMQ alone that says more than anybody reads is a dead letter, and its attempt
// ends with it (R8): whoever sent it has deleted the step's message, and would send the same again.
func TestAResultWithAnUnknownFieldIsADeadLetter(t *testing.T) {
	k := newKit(t)
	k.shop()
	task := k.Submit("shop/one")
	k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)",
		object{"task_id": task, "step": "a", "attempt": 1, "status": "complete", "reslut": 7})
	k.Rest()
	require.Equal(t, []string{"orchestration_step_results"}, list[string](k, "select queue from pawl.dead_letters where reason like 'not a step result%'"))
	require.Equal(t, "dead_letter", k.stepError(task, "a"))
	require.Equal(t, "error", k.State(task))
}

// R10 inside: a message of a newer version is nobody's garbage. It waits for a newer program, and what is around it goes on.
func TestANewerMessageWaitsAndHoldsUpNobody(t *testing.T) {
	k := newKit(t)
	k.shop()
	setting(k, "direct = false")
	k.Submit("shop/one")
	k.Finish(queue, k.ClaimOne(queue))
	newer := get[int64](k, `select pgmq.send('orchestration_step_results', '{"v": 2, "flavour": "new"}')`)
	k.Rest()
	require.Equal(t, []string{"complete"}, list[string](k, "select state::text from pawl.tasks"))
	require.Equal(t, []int64{newer}, k.ids("orchestration_step_results"))
	require.True(t, get[bool](k, "select vt > clock_timestamp() + interval '50 s' from pgmq.q_orchestration_step_results"))
	require.Zero(t, get[int](k, "select count(*)::int from pawl.dead_letters"))
}
