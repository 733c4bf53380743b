package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/kit"
)

// compare asserts that both worlds are equal, and takes the ids of new messages over from the engine.
func (b *both) compare() {
	require.Equal(b, b.describe(), b.look())
	b.adopt()
	require.Equal(b, []int{b.model.Absorbed, b.model.Dead}, kit.Get[[]int](b.Kit,
		"select array[(select count(*)::int from pawl.absorbed), (select count(*)::int from pawl.dead_letters)]"), "absorbed, dead letters")
}

// describe writes the model down, a line for each task, step and key. Of a step in a final task only what is promised: the
// counts of needs are nobody's any more.
func (b *both) describe() string {
	var lines []string
	for id, t := range b.model.Tasks {
		if t.Gone {
			continue
		}
		counts := "-"
		if !final(t.State) && t.State != "pending" {
			counts = fmt.Sprint(t.Counters())
		}
		lines = append(lines, fmt.Sprintf("task %02d %s %s due %s", id, t.State, counts, at(t.Due)))
		for i, s := range t.Steps {
			needs := "-"
			if s.State == "pending" && !final(t.State) {
				needs = fmt.Sprint(s.NeedsOpen)
			}
			value := s.Result
			if value == "" {
				value = "-"
			}
			cause := s.Cause
			if cause == "" {
				cause = "-"
			}
			lines = append(lines, fmt.Sprintf("task %02d s%d %s attempt %d failures %d needs %s due %s %s %s", id, i, s.State, s.Attempt, s.Failures,
				needs, at(s.Due), value, cause))
		}
	}
	for key, i := range b.model.Identities {
		lines = append(lines, fmt.Sprintf("key %s of %02d %s epoch %d", key, i.Task, i.Status, i.Epoch))
	}
	lines = append(append(lines, b.model.describeKeys()...), b.model.describeGate()...)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// look writes the engine down in the same way. The tags of a task are its number, its place among those that were created.
func (b *both) look() string {
	lines := kit.List[string](b.Kit, `
		with numbered as (select t.*, lpad((array_position($1::text[], t.task_id::text) - 1)::text, 2, '0') as no from pawl.tasks t)
		select format('task %s %s %s due %s', n.no, n.state, case when n.finalized_at is null and n.state <> 'pending'
			then format('[%s %s %s %s %s %s]', n.open_count, n.active_count, n.held_count, n.retrying_count, n.waiting_count, n.failed_count) else '-' end,
			coalesce((extract(epoch from n.due_at - $2::timestamptz) * 1000)::bigint::text, '-')) from numbered n
		union all
		select format('task %s %s %s attempt %s failures %s needs %s due %s %s %s', n.no, s.step, s.state, s.attempt, s.failures,
			case when s.state = 'pending' and n.finalized_at is null then s.needs_open::text else '-' end,
			coalesce((extract(epoch from s.due_at - $2::timestamptz) * 1000)::bigint::text, '-'), coalesce(s.result::text, '-'),
			coalesce(s.error->>'type', '-'))
		from numbered n join pawl.steps s on s.task_id = n.task_id
		union all
		select format('key %s/%s of %s %s epoch %s', split_part(i.scope, '/', 2), i.key, (select n.no from numbered n where n.task_id = i.task_id),
			i.status, i.epoch) from pawl.task_identities i
		union all
		select format('step key %s of %s %s until %s', i.key, n.no, i.step,
			coalesce((extract(epoch from i.expires_at - $2::timestamptz) * 1000)::bigint::text, '-'))
		from pawl.step_identities i join numbered n on n.task_id = i.task_id
		join pawl.steps s on s.task_id = i.task_id and s.step = i.step and s.state not in ('error', 'cancelled')
		where i.expires_at > pawl.now() or i.expires_at is null
		union all
		select format('%s %s waits for %s', n.no, w.step, w.key) from pawl.step_key_waiters w left join numbered n on n.task_id = w.task_id
		union all
		select format('%s %s held since %s', n.no, h.step, (extract(epoch from h.held_at - $2::timestamptz) * 1000)::bigint)
		from pawl.held_steps h left join numbered n on n.task_id = h.task_id where h.released_at is null`,
		b.tasks, epoch)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// adopt compares the step queue, and lets the model know the ids of what is new there.
func (b *both) adopt() {
	type row struct {
		ID      int64  `json:"msg_id"`
		Task    string `json:"task_id"`
		Step    string
		Attempt int
		Read    int `json:"read_ct"`
		Visible bool
	}
	key := func(task, step string, attempt int) string { return fmt.Sprint(task, " ", step, " ", attempt) }
	real := map[string]row{}
	for _, r := range kit.Get[[]row](b.Kit, `select coalesce(jsonb_agg(jsonb_build_object('msg_id', q.msg_id, 'task_id', q.message->'task_id',
		'step', q.message->'step', 'attempt', q.message->'attempt', 'read_ct', q.read_ct, 'visible', q.vt <= clock_timestamp())), '[]')
		from pgmq.q_work_queue q`) {
		real[key(r.Task, r.Step, r.Attempt)] = r
	}
	require.Len(b, real, len(b.model.Messages), "messages")
	for _, m := range b.model.Messages {
		name := key(b.tasks[m.Task], fmt.Sprint("s", m.Step), m.Attempt)
		r, there := real[name]
		require.True(b, there, "the engine lacks the message %s", name)
		m.ID = r.ID
		require.Equal(b, row{m.ID, r.Task, r.Step, m.Attempt, m.Read, m.Visible}, r, "message %s", name)
	}
}
