package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// deaden makes a dead letter of a message that the result-processor cannot read.
func (k *kit) deaden(body string) {
	k.Helper()
	k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)", body)
	k.Rest()
}

func (k *kit) redrive(filter object) object {
	k.Helper()
	return k.object("select pawl.redrive_dead_letters($1, 100, null, 'ann', 'mended')", filter)
}

func TestDeadLettersAreRedrivenByFilter(t *testing.T) {
	k := newKit(t)
	for _, body := range []string{`"one"`, `"two"`, `"three"`} {
		k.deaden(body)
	}
	k.Exec("insert into pawl.dead_letters (queue, message, reason) values ('gone_queue', '{}', 'worker raised: timeout')")
	ids := list[int64](k, "select dead_letter_id from pawl.dead_letters order by 1")
	require.Len(t, ids, 4)

	require.EqualValues(t, 1, k.redrive(object{"ids": ids[:1]})["redriven"])
	require.Equal(t, "one", get[string](k, "select message #>> '{}' from pgmq.q_orchestration_step_results"))
	require.EqualValues(t, 0, k.redrive(object{"ids": ids[:1]})["redriven"], "only once")
	require.EqualValues(t, 1, k.redrive(object{"reason": "%timeout"})["left"], "its queue is gone")
	require.EqualValues(t, 0, k.redrive(object{"before": "2000-01-01"})["redriven"])
	require.EqualValues(t, 0, k.redrive(object{"queue": "gone_queue", "after": "2000-01-01"})["redriven"])

	// Spread over a span of time, evenly.
	k.Exec("delete from pgmq.q_orchestration_step_results")
	spread := k.object("select pawl.redrive_dead_letters('{\"queue\": \"orchestration_step_results\"}', 100, '10 seconds', 'ann', 'slowly')")
	require.EqualValues(t, 2, spread["redriven"])
	require.InDelta(t, 5, get[float64](k, "select extract(epoch from max(vt) - min(vt))::float from pgmq.q_orchestration_step_results"), 0.5)

	require.EqualValues(t, 1, k.object("select pawl.drop_dead_letters('{}', 100, 'ann', 'old')")["dropped"])
	require.Equal(t, []string{"dropped", "redriven"}, list[string](k, "select distinct status from pawl.dead_letters where ended_by = 'ann' order by 1"))
	require.Equal(t, 7, get[int](k, "select count(*)::int from pawl.operations where actor = 'ann'"))
}

// A queue is gone with its table, whatever PGMQ has written down about it.
func TestRedriveGoesByTheTableOfAQueue(t *testing.T) {
	k := newKit(t)
	k.Exec("select pgmq.create('half_gone')")
	k.Exec("drop table pgmq.q_half_gone")
	k.Exec("insert into pawl.dead_letters (queue, message, reason) values ('half_gone', '{}', 'r')")
	require.EqualValues(t, 1, k.redrive(object{"queue": "half_gone"})["left"])
}

func TestDeadLetterCommandsRefuseWhatTheyDoNotKnow(t *testing.T) {
	k := newKit(t)
	for filter, quantity := range map[string]int{`{"quue": "x"}`: 1, `[]`: 1, `{"ids": 5}`: 1, `{"ids": ["x"]}`: 1, `{"before": "soon"}`: 1, `{}`: 0, ` {}`: 10001} {
		k.refused("PW024", "select pawl.redrive_dead_letters($1, $2, null, 'ann', 'r')", filter, quantity)
		k.refused("PW024", "select pawl.drop_dead_letters($1, $2, 'ann', 'r')", filter, quantity)
	}
	k.refused("PW024", "select pawl.redrive_dead_letters('{}', 1, '8 days', 'ann', 'r')")
	k.refused("PW023", "select pawl.redrive_dead_letters('{}', 1, null, '', 'r')")
	k.refused("PW024", "select pawl.drop_dead_letters($1, 1, 'ann', 'r')", object{"queue": nil}) // an unset variable is not all
	k.refused("PW023", "select pawl.drop_dead_letters('{}', 1, 'ann', null)")
}

func TestRedrivenMessageOfAnEndedAttemptIsAbsorbed(t *testing.T) {
	k := newKit(t)
	k.Template("dead/one", nil, step("a"))
	task := k.Submit("dead/one")
	bad := k.ClaimOne("work_queue")
	k.Exec(`select pawl.refuse_delivery('work_queue', (msg_id, read_ct, message, headers)::pawl.delivery, 'XX000', 'it raised')
		from pgmq.q_work_queue`)
	k.Rest()
	require.Equal(t, "waiting_for_retry", k.steps(task)["a"], "the dead letter has ended the attempt")
	done := k.redrive(object{"task_id": bad.Task})
	require.EqualValues(t, 1, done["absorbed"])
	require.EqualValues(t, 0, done["redriven"])
	require.Zero(t, get[int](k, "select count(*)::int from pgmq.q_work_queue"))

	// A malformed request comes back as it was sent.
	id := get[int64](k, `select pgmq.send('orchestration_task_requests', '{"template": "dead/one", "input": {"n": 1}}')`)
	k.Exec(`select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'invalid',
		'{"error": "InvalidRequest", "message": "no such template"}'::jsonb)))`, id)
	require.EqualValues(t, 1, k.redrive(object{"queue": "orchestration_task_requests"})["redriven"])
	require.Equal(t, "dead/one", get[string](k, "select message->>'template' from pgmq.q_orchestration_task_requests"))
}

// Two operators at once: each letter is redriven once, nobody waits.
func TestTwoRedrivesShareTheLetters(t *testing.T) {
	k := newCommittingKit(t)
	k.deaden(`"one"`)
	k.deaden(`"two"`)
	one, two := k.begin(), k.begin()
	first := one.object("select pawl.redrive_dead_letters('{}', 1, null, 'ann', 'r')")
	second := two.object("select pawl.redrive_dead_letters('{}', 100, null, 'bob', 'r')")
	two.commit()
	one.commit()
	require.EqualValues(t, 1, first["redriven"])
	require.EqualValues(t, 1, second["redriven"])
	require.Equal(t, 2, get[int](k, "select count(*)::int from pgmq.q_orchestration_step_results"))
}
