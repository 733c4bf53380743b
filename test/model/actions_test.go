package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/test/kit"
)

// operation is what may happen next.
type operation struct {
	name string
	do   func(b *both)
}

// operations of a run, what brings work forward first and more often: rapid draws the first ones most.
func operations() []operation {
	claim, report, submit := operation{"claim", (*both).claim}, operation{"report what was claimed last", (*both).reportFresh},
		operation{"submit", (*both).submit}
	return []operation{
		claim, report, submit, report, claim, report, {"time passes", (*both).pass}, report, claim, submit, report,
		{"foreign result", (*both).foreign}, {"report", (*both).report}, {"expire", (*both).expire}, {"retry task", (*both).retryTask},
		{"retry step", (*both).retryStep}, report, {"end step", (*both).endStep}, {"cancel", (*both).cancel}, claim,
		{"extend", (*both).extend}, {"release", (*both).release}, {"resolve task", (*both).resolveTask}, report, submit,
	}
}

// impossibleNow ends an operation for which there is nothing now.
type impossibleNow struct{}

// happen lets one operation happen, if it can: then the engine runs until its queues are empty, and both worlds are compared.
func (b *both) happen(o operation) {
	defer func() {
		if reason := recover(); reason != nil && reason != (impossibleNow{}) {
			panic(reason)
		}
	}()
	o.do(b)
	b.rest()
	b.compare()
	b.done[o.name]++
}

func pick[T any](b *both, name string, from []T) T {
	if len(from) == 0 {
		b.rt.Skip("no " + name)
	}
	return rapid.SampledFrom(from).Draw(b.rt, name)
}

func (b *both) submit() {
	if len(b.tasks) >= 12 {
		panic(impossibleNow{})
	}
	template := rapid.IntRange(0, len(b.model.Templates)-1).Draw(b.rt, "template")
	key := ""
	if !b.keyed {
		key = rapid.SampledFrom([]string{"", "", "one", "two"}).Draw(b.rt, "key")
	}
	startAt := b.model.Now + time.Duration(rapid.SampledFrom([]int{0, 0, 0, 7}).Draw(b.rt, "start in"))*time.Second
	reject := rapid.Bool().Draw(b.rt, "reject")
	fields := kit.Object{"tags": []int{len(b.tasks)}}
	if key != "" {
		fields["key"] = key
	}
	if startAt > b.model.Now {
		fields["run_at"] = epoch.Add(startAt).Format(time.RFC3339Nano)
	}
	if reject {
		fields["on_duplicate"] = "reject"
	}
	r := Request{Template: template, Key: key, StartAt: startAt, Reject: reject}
	if b.keyed {
		r.Input = rapid.SampledFrom([]string{"one", "one", "two", ""}).Draw(b.rt, "input")
		fields["input"] = kit.Object{"k": r.Input}
	}
	outcome := b.Request("m/"+b.model.Templates[template].Name, fields)
	want := b.model.Submit(r)
	require.Equal(b, want, outcome["outcome"], "%v", outcome)
	if want == "created" {
		b.tasks = append(b.tasks, outcome["task_id"].(string))
	}
}

func (b *both) claim() {
	quantity := rapid.IntRange(1, 5).Draw(b.rt, "quantity")
	claimed := kit.Get[[]kit.Delivery](b.Kit, `select pawl.claim_steps('work_queue', $1, 'worker-1', '{"lease_ms": 36000000}')`, quantity)
	var got, want []string
	for _, d := range claimed {
		got = append(got, fmt.Sprint(d.ID, " ", d.Step, " ", d.Attempt, " ", d.ReadCount))
		b.held = append(b.held, delivery{d.ID, d.ReadCount})
		b.fresh = append(b.fresh, delivery{d.ID, d.ReadCount})
	}
	for _, m := range b.model.Claim(quantity) {
		want = append(want, fmt.Sprint(m.ID, " s", m.Step, " ", m.Attempt, " ", m.Read))
	}
	require.Equal(b, want, got)
}

// result draws the end of an attempt, for the model and for the engine.
func (b *both) result() (Result, kit.Object) {
	r := Result{Status: rapid.SampledFrom([]string{"complete", "complete", "complete", "failed", "rejected"}).Draw(b.rt, "status"), After: none}
	if r.Status == "complete" {
		r.Value = fmt.Sprintf("%q", rapid.SampledFrom([]string{"x", "y"}).Draw(b.rt, "value"))
		return r, kit.Object{"status": r.Status, "result": strings.Trim(r.Value, `"`)}
	}
	r.Retryable = rapid.Bool().Draw(b.rt, "retryable")
	r.Cause = "boom"
	problem := kit.Object{"type": "boom", "message": "it broke", "retryable": r.Retryable}
	if after := rapid.SampledFrom([]int{-1, 0, 9}).Draw(b.rt, "retry after"); after >= 0 {
		r.After = time.Duration(after) * time.Second
		problem["retry_after"] = after
	}
	return r, kit.Object{"status": r.Status, "error": problem}
}

func (b *both) report() { b.reportOne(pick(b, "delivery", b.held)) }

// reportFresh reports one of the last claimed that is not yet reported, as far as this worker knows.
func (b *both) reportFresh() {
	if len(b.fresh) == 0 {
		panic(impossibleNow{})
	}
	i := rapid.IntRange(0, len(b.fresh)-1).Draw(b.rt, "claimed")
	d := b.fresh[i]
	b.fresh = slices.Delete(b.fresh, i, i+1)
	b.reportOne(d)
}

func (b *both) reportOne(d delivery) {
	r, end := b.result()
	accepted := b.Report(kit.Queue, kit.Delivery{ID: d.id, ReadCount: d.read}, end)
	require.Equal(b, b.model.Report(d.id, d.read, r), accepted)
}

func (b *both) extend() {
	d := pick(b, "delivery", b.held)
	got := kit.Get[[]kit.Object](b.Kit, "select pawl.extend_leases('work_queue', jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'read_ct', $2::int)), 36000000)",
		d.id, d.read)
	require.Equal(b, b.model.Extend(d.id, d.read), got[0]["status"])
}

func (b *both) release() {
	d := pick(b, "delivery", b.held)
	got := kit.Get[[]kit.Object](b.Kit, "select pawl.release_steps('work_queue', jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'read_ct', $2::int)))",
		d.id, d.read)
	m := b.model.Held(d.id, d.read)
	require.Equal(b, m != nil, got[0]["released"])
	if m != nil {
		m.Visible = true
	}
}

func (b *both) expire() {
	m := pick(b, "message", b.model.Messages)
	b.Exec("update pgmq.q_work_queue set vt = clock_timestamp() where msg_id = $1 and vt > clock_timestamp()", m.ID)
	m.Visible = true
}

// foreign is a result that a worker put on the queue itself, perhaps of another attempt, perhaps twice.
func (b *both) foreign() {
	task := b.task()
	step := b.step(task)
	r, end := b.result()
	r.Task, r.Step = task, step
	r.Attempt = max(0, b.model.Tasks[task].Steps[step].Attempt+rapid.SampledFrom([]int{0, 0, -1, 1}).Draw(b.rt, "attempt"))
	end["task_id"], end["step"], end["attempt"] = b.tasks[task], fmt.Sprint("s", step), r.Attempt
	for range rapid.IntRange(1, 2).Draw(b.rt, "times") {
		b.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)", end)
		b.Rest()
		b.model.Apply(r)
		b.rest()
	}
}

func (b *both) pass() {
	b.model.Now += time.Duration(rapid.IntRange(0, 12).Draw(b.rt, "seconds")) * time.Second
	b.setClock()
	b.Tick()
	b.model.Fire()
}

func (b *both) task() int {
	if len(b.tasks) == 0 {
		panic(impossibleNow{})
	}
	task := rapid.IntRange(0, len(b.tasks)-1).Draw(b.rt, "task")
	if b.model.Tasks[task].Gone {
		panic(impossibleNow{})
	}
	return task
}

func (b *both) step(task int) int {
	return rapid.IntRange(0, len(b.model.Tasks[task].Steps)-1).Draw(b.rt, "step")
}

// command runs an operator's command in a savepoint; want is the SQLSTATE it should be refused with.
func (b *both) command(want, sql string, args ...any) {
	inner, err := b.tx.Begin(b.Context())
	require.NoError(b, err)
	_, err = inner.Exec(b.Context(), sql, args...)
	code := ""
	if err != nil {
		var raised *pgconn.PgError
		require.True(b, errors.As(err, &raised), "%v", err)
		code = raised.Code
		require.NoError(b, inner.Rollback(b.Context()))
	} else {
		require.NoError(b, inner.Commit(b.Context()))
	}
	require.Equal(b, want, code, "%s %v: %v", sql, args, err)
}

func (b *both) cancel() {
	task := b.task()
	b.command(b.model.Cancel(task), "select pawl.cancel_task($1, 'ann', 'no')", b.tasks[task])
}

func (b *both) resolveTask() {
	task := b.task()
	b.command(b.model.ResolveTask(task), "select pawl.resolve_task($1, '7', 'ann', 'done')", b.tasks[task])
}

func (b *both) retryTask() {
	task := b.task()
	from := rapid.IntRange(-1, len(b.model.Tasks[task].Steps)-1).Draw(b.rt, "from")
	var name any
	if from >= 0 {
		name = fmt.Sprint("s", from)
	}
	b.command(b.model.RetryTask(task, from), "select pawl.retry_task($1, $2, 'ann', 'again')", b.tasks[task], name)
}

func (b *both) retryStep() {
	task := b.task()
	step := b.step(task)
	b.command(b.model.RetryStep(task, step), "select pawl.retry_step($1, $2, 0, 'ann', 'again')", b.tasks[task], fmt.Sprint("s", step))
}

func (b *both) endStep() {
	task := b.task()
	step := b.step(task)
	if rapid.Bool().Draw(b.rt, "with a result") {
		b.command(b.model.EndStep(task, step, "complete", `"hand"`), `select pawl.complete_step($1, $2, 0, '"hand"', 'ann', 'done')`,
			b.tasks[task], fmt.Sprint("s", step))
		return
	}
	b.command(b.model.EndStep(task, step, "resolved_manually", ""), "select pawl.resolve_step($1, $2, 0, 'ann', 'done')",
		b.tasks[task], fmt.Sprint("s", step))
}
