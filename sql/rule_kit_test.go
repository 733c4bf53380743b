package sql_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// stateTables hold everything that business depends on; what only tells (absorbed, operations, processors) is not among them.
var stateTables = []string{"tasks", "steps", "task_identities", "step_identities", "step_key_waiters", "held_steps", "entity_claims",
	"audit", "dead_letters", "templates", "template_steps", "template_edges", "template_settings", "engine_settings", "reconciler_notes"}

// content is all rows of the state tables and all messages, leases aside: equal contents, equal business.
func (k *kit) content() []string {
	k.Helper()
	parts := []string{"select 'queue ' || queue || concat_ws(' ', rate_limit, rate_period, burst, max_concurrency, paused) as line from pawl.queues"}
	for _, table := range stateTables {
		parts = append(parts, fmt.Sprintf("select '%s ' || to_jsonb(x)::text as line from pawl.%s x", table, table))
	}
	for _, queue := range list[string](k, "select queue_name from pgmq.meta") {
		parts = append(parts, fmt.Sprintf("select '%s ' || m.msg_id || ' ' || m.message::text as line from pgmq.%s m", queue,
			pgx.Identifier{"q_" + queue}.Sanitize()))
	}
	return list[string](k, `select line from (`+strings.Join(parts, " union all ")+`) x order by line collate "C"`)
}

// ids of all messages of a queue.
func (k *kit) ids(queue string) []int64 {
	k.Helper()
	return list[int64](k, fmt.Sprintf("select msg_id from pgmq.%s order by 1", pgx.Identifier{"q_" + queue}.Sanitize()))
}

// bypassGuards takes the statement triggers off, so that nothing asks whether a transition is legal.
func (k *kit) bypassGuards() {
	k.Helper()
	k.Exec("alter table pawl.tasks disable trigger user")
	k.Exec("alter table pawl.steps disable trigger user")
}

// bypassChecks drops the CHECK constraints of tasks and steps.
func (k *kit) bypassChecks() {
	k.Helper()
	for _, drop := range list[string](k, `select format('alter table %s drop constraint %I', conrelid::regclass, conname)
		from pg_constraint where contype = 'c' and conrelid in ('pawl.tasks'::regclass, 'pawl.steps'::regclass)`) {
		k.Exec(drop)
	}
}

// operation is a call that changes something, and how things stand before it.
type operation struct {
	name    string
	prepare func(k *kit) call
}

// call is one statement of a client.
type call struct {
	sql  string
	args []any
}

func calling(sql string, args ...any) call { return call{sql: sql, args: args} }

// emptying calls an actor's function for all messages of its queue.
func (k *kit) emptying(queue, function string) call {
	k.Helper()
	return calling("select pawl."+function+"($1, 'kit')", k.ids(queue))
}

func leases(claimed ...delivery) []object {
	all := make([]object, len(claimed))
	for i, d := range claimed {
		all[i] = object{"msg_id": d.ID, "read_ct": d.ReadCount}
	}
	return all
}

func reportsOf(status string, claimed ...delivery) []object {
	all := leases(claimed...)
	for i := range all {
		all[i]["status"] = status
		all[i]["result"] = object{"by": claimed[i].Step}
		all[i]["error"] = object{"type": "boom", "retry_after": 0}
	}
	return all
}

func setting(k *kit, what string) { k.Helper(); k.Exec("update pawl.engine_settings set " + what) }

// failedTask is one of shop/diamond whose first step failed for good.
func failedTask(k *kit) any {
	k.Helper()
	task := k.Submit("shop/diamond", object{"key": "one"})
	k.fail(queue, k.ClaimOne(queue))
	return task
}

// workOperations are what producers, workers and the engine's own processes call.
func workOperations() []operation {
	return []operation{
		{"request", func(k *kit) call {
			k.Exec(`select pgmq.send('orchestration_task_requests', '{"template": "shop/diamond", "input": {}, "key": "k"}') from generate_series(1, 2)`)
			return calling(`select pawl.process_task_requests((select jsonb_agg(jsonb_build_object('msg_id', i, 'template_id',
				(select template_id from pawl.templates where name = 'diamond'))) from unnest($1::bigint[]) i), 'p')`, k.ids("orchestration_task_requests"))
		}},
		{"claim", func(k *kit) call {
			k.Submit("shop/diamond")
			return calling("select pawl.claim_steps('work_queue', 10, 'w')")
		}},
		{"report", func(k *kit) call {
			k.Submit("shop/diamond")
			return calling("select pawl.report_steps('work_queue', $1, 'w')", reportsOf("complete", k.Claim(queue)...))
		}},
		{"report the last step", func(k *kit) call {
			k.Submit("shop/one", object{"key": "last"})
			return calling("select pawl.report_steps('work_queue', $1, 'w')", reportsOf("complete", k.Claim(queue)...))
		}},
		{"report a failure", func(k *kit) call {
			k.Submit("shop/diamond")
			return calling("select pawl.report_steps('work_queue', $1, 'w')", reportsOf("failed", k.Claim(queue)...))
		}},
		{"report and claim", func(k *kit) call {
			k.Submit("shop/diamond")
			return calling("select pawl.report_and_claim_steps('work_queue', $1, 10, 'w')", reportsOf("complete", k.Claim(queue)...))
		}},
		{"apply results", func(k *kit) call {
			setting(k, "direct = false")
			k.Submit("shop/diamond")
			k.Submit("shop/one")
			k.Finish(queue, k.Claim(queue)...)
			return k.emptying("orchestration_step_results", "apply_step_results")
		}},
		{"enqueue", func(k *kit) call {
			setting(k, "staged = true")
			k.Submit("shop/diamond")
			return k.emptying("orchestration_step_enqueues", "process_step_enqueues")
		}},
		{"build a large task", func(k *kit) call {
			setting(k, "max_steps_per_transaction = 2")
			k.Submit("shop/diamond")
			return k.emptying("orchestration_step_enqueues", "process_step_enqueues")
		}},
		{"finalize", func(k *kit) call {
			k.evaluating()
			return k.emptying("orchestration_task_finalizations", "finalize_tasks")
		}},
		{"fire what is due", func(k *kit) call {
			k.Submit("shop/flaky")
			require.True(k, k.Report(queue, k.ClaimOne(queue), object{"status": "failed", "error": object{"type": "boom"}}))
			k.Later(time.Hour)
			return calling("select pawl.fire_due(10, 'p')")
		}},
		{"release held steps", func(k *kit) call {
			k.configure(queue, object{"max_concurrency": 1})
			k.Submit("shop/one")
			k.Exec("delete from pgmq.q_orchestration_step_enqueues")
			return calling("select pawl.release_held(10, 'p')")
		}},
		{"dead-letter", func(k *kit) call {
			setting(k, "direct = false")
			k.Submit("shop/one")
			k.Finish(queue, k.Claim(queue)...)
			return calling("select pawl.dead_letter_messages('orchestration_step_results', $1, 'it raises')", k.ids("orchestration_step_results"))
		}},
		{"register a template", func(*kit) call {
			return calling("select pawl.adhoc_template('shop', 'shop.new', 'other_queue')")
		}},
	}
}

// commandOperations are what operators call.
func commandOperations() []operation {
	onOpen := func(sql string) func(k *kit) call {
		return func(k *kit) call { return calling(sql, k.Submit("shop/diamond", object{"key": "one"})) }
	}
	onFailed := func(sql string) func(k *kit) call {
		return func(k *kit) call { return calling(sql, failedTask(k)) }
	}
	return []operation{
		{"cancel a task", onOpen("select pawl.cancel_task($1, 'ann', 'r')")},
		{"resolve a task", onOpen("select pawl.resolve_task($1, '7', 'ann', 'r')")},
		{"resolve a step", onOpen("select pawl.resolve_step($1, 'a', 0, 'ann', 'r')")},
		{"complete a step", onOpen("select pawl.complete_step($1, 'a', 0, '7', 'ann', 'r')")},
		{"retry a task", onFailed("select pawl.retry_task($1, null, 'ann', 'r')")},
		{"retry a step", onFailed("select pawl.retry_step($1, 'a', 0, 'ann', 'r')")},
		{"redrive", func(k *kit) call {
			k.Exec("select pgmq.send('work_queue', '{}')")
			k.Claim(queue)
			return calling("select pawl.redrive_dead_letters('{}', 10, null, 'ann', 'r')")
		}},
		{"drop", func(k *kit) call {
			k.Exec("select pgmq.send('work_queue', '{}')")
			k.Claim(queue)
			return calling("select pawl.drop_dead_letters('{}', 10, 'ann', 'r')")
		}},
		{"pause", func(*kit) call { return calling("select pawl.pause_queue('work_queue', 'ann', 'r')") }},
		{"configure a queue", func(*kit) call {
			return calling(`select pawl.configure_queue('work_queue', '{"rate_limit": "5/sec"}', 'ann', 'r')`)
		}},
		{"configure a template", func(*kit) call {
			return calling(`select pawl.configure_template('shop', 'one', '{"retention": "1d"}', 'ann', 'r')`)
		}},
		{"configure the engine", func(*kit) call {
			return calling(`select pawl.configure_engine('{"audit_retention": "9d"}', 'ann', 'r')`)
		}},
	}
}

// shop registers the templates of the operations.
func (k *kit) shop() {
	k.Helper()
	k.Template("shop/diamond", nil, diamond()...)
	k.Template("shop/one", nil, step("a"))
	k.Template("shop/flaky", nil, step("a", object{"retry": object{"max_attempts": 5, "base_ms": 1000, "jitter": 0}}))
}

// evaluating makes a task of shop/one that waits for its finalizer, with the message that asks for it.
func (k *kit) evaluating() (task any) {
	k.Helper()
	setting(k, "staged = true")
	id := k.Submit("shop/one", object{"key": "final"})
	next := k.emptying("orchestration_step_enqueues", "process_step_enqueues")
	k.Exec(next.sql, next.args...)
	k.Finish(queue, k.ClaimOne(queue))
	next = k.emptying("orchestration_step_results", "apply_step_results")
	k.Exec(next.sql, next.args...)
	require.Equal(k, "evaluating_results", k.State(id))
	return id
}
