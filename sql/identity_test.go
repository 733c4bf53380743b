package sql_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	engine "github.com/pawl-dev/pawl/test/kit"
)

var update = flag.Bool("update", false, "write the tables of docs/idempotency.md")

// identityTemplates makes four and gives the id of the first: plain, one that holds after a failure, one that a lower bound builds in pieces, one with a timeout.
func identityTemplates(k *kit) int {
	plain := k.Template("id/plain", object{}, step("a", object{"queue": "id_queue", "retry": object{"max_attempts": 2}}))
	k.Template("id/hold", object{"on_failure": "hold"}, step("a", object{"queue": "id_queue"}))
	k.Template("id/large", object{}, step("a", object{"queue": "id_queue"}), step("b: a", object{"queue": "id_queue"}))
	k.Template("id/timed", object{"timeout_ms": 1000}, step("a", object{"queue": "id_queue"}))
	return plain
}

// endStep claims the first step of a task and reports it.
func (k *kit) endStep(task uuid.UUID, end object) {
	k.Helper()
	for _, d := range k.Claim("id_queue") {
		if d.Task == task {
			require.True(k, k.Report("id_queue", d, end))
			return
		}
	}
	require.FailNow(k, "the task's step is not there")
}

var (
	done      = object{"status": "complete", "result": object{"answer": 42}}
	failed    = object{"status": "failed", "error": object{"type": "boom", "retryable": false}}
	tryLater  = object{"status": "failed", "error": object{"type": "net", "retryable": true}}
	aKeyInput = object{"amount": 1}
)

// previous states of the task that has a key, each with its template and what brings a task there.
var previous = []struct {
	state, template string
	fields          object
	reach           func(k *kit, task uuid.UUID)
}{
	{"`pending` (its start lies ahead)", "id/plain", object{"run_at": "2100-01-01T00:00:00Z"}, nil},
	{"`initializing`", "id/large", nil, nil},
	{"running", "id/plain", nil, nil},
	{"running, in back-off", "id/plain", nil, func(k *kit, task uuid.UUID) { k.endStep(task, tryLater) }},
	{"`blocked_by_failures`", "id/hold", nil, func(k *kit, task uuid.UUID) { k.endStep(task, failed) }},
	{"`complete`", "id/plain", nil, func(k *kit, task uuid.UUID) { k.endStep(task, done) }},
	{"`resolved_manually`", "id/plain", nil, func(k *kit, task uuid.UUID) {
		k.Exec(`select pawl.resolve_task($1, '{"answer": 42}', 'ann', 'done by hand')`, task)
	}},
	{"`error`", "id/plain", nil, func(k *kit, task uuid.UUID) { k.endStep(task, failed) }},
	{"`cancelled`", "id/plain", nil, func(k *kit, task uuid.UUID) { k.Exec("select pawl.cancel_task($1, 'ann', 'no')", task) }},
	{"`timed_out`", "id/timed", nil, func(k *kit, task uuid.UUID) {
		k.Exec("update pawl.tasks set due_at = '2020-01-01' where task_id = $1", task) // before any back-off that a slow run lets end
		k.Tick()
	}},
	{"`complete`, the window is over", "id/plain", nil, func(k *kit, task uuid.UUID) {
		k.endStep(task, done)
		k.Exec("update pawl.task_identities set expires_at = pawl.now() where task_id = $1", task)
	}},
	{"`complete`, only the identity is left", "id/plain", nil, func(k *kit, task uuid.UUID) {
		k.endStep(task, done)
		k.Exec("delete from pawl.steps where task_id = $1", task)
		k.Exec("delete from pawl.tasks where task_id = $1", task)
	}},
}

// meets tells in words how a request fared.
func meets(k *kit, holder uuid.UUID, answer object) string {
	switch answer["outcome"] {
	case "created":
		require.NotEqual(k, holder.String(), answer["task_id"])
		return fmt.Sprintf("new task, epoch %d", get[int](k, "select epoch from pawl.tasks where task_id = $1", answer["task_id"]))
	case "attached":
		require.Equal(k, holder.String(), answer["task_id"])
		text := fmt.Sprintf("attached, `%s`", answer["status"])
		if result, ok := answer["result"]; ok {
			require.Equal(k, object{"answer": 42.0}, result)
			text += " with its result"
		}
		return text
	case "rejected":
		refusal := answer["error"].(object)
		require.Equal(k, holder.String(), refusal["existing_execution_id"])
		return fmt.Sprintf("`%s`", refusal["error"])
	}
	require.FailNow(k, "unknown outcome", "%v", answer)
	return ""
}

func TestDuplicatesFollowTheDocumentedMatrix(t *testing.T) {
	k := newKit(t)
	identityTemplates(k)
	k.Exec("update pawl.engine_settings set max_steps_per_transaction = 1")
	var b strings.Builder
	b.WriteString("| previous state of the key's task | same input, `attach` | same input, `reject` | other input, either |\n| --- | --- | --- | --- |\n")
	for i, p := range previous {
		fmt.Fprintf(&b, "| %s ", p.state)
		for _, c := range []struct {
			policy string
			input  object
		}{{"attach", aKeyInput}, {"reject", aKeyInput}, {"attach", object{"amount": 2}}, {"reject", object{"amount": 2}}} {
			key := object{"key": fmt.Sprintf("order-%d-%s-%v", i, c.policy, c.input["amount"]), "input": aKeyInput}
			task := k.Submit(p.template, key, p.fields)
			if p.reach != nil {
				p.reach(k, task)
			}
			met := meets(k, task, k.Request(p.template, object{"key": key["key"], "input": c.input, "on_duplicate": c.policy}))
			if c.policy == "reject" && c.input["amount"] == 2 {
				require.True(t, strings.HasSuffix(b.String(), "| "+met+" "), "%s: the policy matters for other input: %s", p.state, met)
				continue
			}
			fmt.Fprintf(&b, "| %s ", met)
		}
		b.WriteString("|\n")
	}
	k.sound()
	have, write := engine.Section(t, "../docs/idempotency.md", "matrix")
	if *update {
		write(b.String())
		return
	}
	require.Equal(t, b.String(), have, "run go test ./sql -run Matrix -update")
}

func TestErrorsOfDuplicatesHaveTheirShapes(t *testing.T) {
	k := newKit(t)
	identityTemplates(k)
	again := object{"key": "payment-123", "input": aKeyInput, "on_duplicate": "reject"}
	task := k.Submit("id/plain", again)
	require.Equal(t, object{"error": "TaskAlreadyExists", "message": "Task with ID 'payment-123' is already pending/running",
		"existing_execution_id": task.String(), "status": "running"}, k.Request("id/plain", again)["error"])
	mismatch := k.Request("id/plain", object{"key": "payment-123", "input": 7})["error"].(object)
	require.Equal(t, []any{"TaskInputMismatch", task.String(), "running"},
		[]any{mismatch["error"], mismatch["existing_execution_id"], mismatch["status"]})
	k.endStep(task, done)
	refusal := k.Request("id/plain", again)["error"].(object)
	require.NotEmpty(t, refusal["completed_at"])
	delete(refusal, "completed_at")
	require.Equal(t, object{"error": "TaskAlreadyCompleted", "message": "Task with ID 'payment-123' already completed successfully",
		"existing_execution_id": task.String(), "result": object{"answer": 42.0}}, refusal)
}

func TestDuplicatesLeaveATraceWithoutTheirInput(t *testing.T) {
	k := newKit(t)
	identityTemplates(k)
	task := k.Submit("id/plain", object{"key": "k", "input": object{"pin": "1234"}})
	k.Request("id/plain", object{"key": "k", "input": object{"pin": "1234"}})
	k.Request("id/plain", object{"key": "k", "input": object{"pin": "9999"}})
	require.Equal(t, []string{"duplicate request", "TaskInputMismatch"}, list[string](k,
		"select reason from pawl.absorbed where task_id = $1 order by absorbed_id", task))
	require.Zero(t, get[int](k, "select count(*) from pawl.absorbed where message::text ~ '1234|9999'"))
}

func TestStrategiesDecideWhatAKeyIs(t *testing.T) {
	k := newKit(t)
	for _, s := range []string{"caller_provided", "strict", "always_unique"} {
		k.Template("id/"+s, object{"identity": object{"strategy": s}}, step("a"))
	}
	input := object{"input": object{"b": 2.50, "a": []int{1, 2}}}
	refused := k.Request("id/caller_provided", input)
	require.Equal(t, []any{"invalid", "KeyRequired"}, []any{refused["outcome"], refused["error"].(object)["error"]})
	k.Submit("id/caller_provided", input, object{"key": "k"})

	strict := k.Submit("id/strict", input)
	same := get[object](k, `select jsonb_build_object('input', '{"a": [1, 2.0], "b": 2.5}'::jsonb)`) // equal, written differently
	require.Equal(t, strict.String(), k.Request("id/strict", same)["task_id"])
	k.Submit("id/strict", object{"input": object{"b": 2.5, "a": []int{2, 1}}})

	require.NotEqual(t, k.Submit("id/always_unique", input), k.Submit("id/always_unique", input))
	for _, s := range []string{"strict", "always_unique"} {
		refused := k.Request("id/"+s, object{"key": "k"})
		require.Equal(t, []any{"invalid", "KeyNotTaken"}, []any{refused["outcome"], refused["error"].(object)["error"]})
	}
	require.Equal(t, 3, get[int](k, "select count(*) from pawl.task_identities"), "without a key there is no row")
}

func TestKeysHaveTheScopeOfTheirTemplateOrNamespace(t *testing.T) {
	k := newKit(t)
	identityTemplates(k)
	wide := object{"identity": object{"scope": "namespace"}}
	k.Template("wide/one", wide, step("a"))
	k.Template("wide/two", wide, step("a"))
	key := object{"key": "same"}
	require.NotEqual(t, k.Submit("id/plain", key), k.Submit("id/hold", key))
	first := k.Submit("wide/one", key)
	require.Equal(t, first.String(), k.Request("wide/two", key)["task_id"])

	k.Exec(`select pawl.register_template(jsonb_set(definition, '{version}', '"2"')) from pawl.templates where name = 'plain'`)
	require.Equal(t, "attached", k.Request("id/plain", key)["outcome"], "all versions of a template share their keys")
}

func TestAdHocKeysHaveTheScopeOfTheirHandler(t *testing.T) {
	k := newKit(t)
	send := func(handler, queue string) object {
		k.Helper()
		template := get[int](k, "select pawl.adhoc_template('default', $1, $2)", handler, queue)
		id := get[int64](k, "select pgmq.send('orchestration_task_requests', $1::jsonb)", object{"handler": handler, "key": "k"})
		return get[[]object](k, "select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'template_id', $2::int)))", id, template)[0]
	}
	require.Equal(t, "created", send("mail", "a_queue")["outcome"])
	require.Equal(t, "attached", send("mail", "b_queue")["outcome"])
	require.Equal(t, "created", send("print", "a_queue")["outcome"])
}

func TestReopenedKeyKeepsTheHistory(t *testing.T) {
	k := newKit(t)
	identityTemplates(k)
	key := object{"key": "k", "input": aKeyInput}
	first := k.Submit("id/plain", key)
	k.endStep(first, failed)
	second := k.Submit("id/plain", object{"key": "k", "input": object{"amount": 9}})
	k.endStep(second, done)
	require.Equal(t, "attached", k.Request("id/plain", object{"key": "k", "input": object{"amount": 9}})["outcome"])
	require.Equal(t, []string{"1 error", "2 complete"}, list[string](k,
		"select epoch || ' ' || state from pawl.tasks where key = 'k' order by epoch"))
	k.refused("PW022", "select pawl.retry_task($1, null, 'ann', 'again')", first)
}

func TestWindowMayOutliveTheData(t *testing.T) {
	k := newKit(t)
	k.Template("id/long", object{"retention_ms": 0, "identity": object{"dedup_window_ms": 86_400_000}}, step("a", object{"queue": "id_queue"}))
	k.Template("id/short", object{"identity": object{"dedup_window_ms": 0}}, step("a", object{"queue": "id_queue"}))
	key := object{"key": "k", "input": aKeyInput}
	task := k.Submit("id/long", key)
	k.endStep(task, done)
	k.Later(2 * time.Minute)
	k.Exec("select pawl.sweep(100)")
	require.Zero(t, get[int](k, "select count(*) from pawl.tasks where task_id = $1", task))
	answer := k.Request("id/long", key)
	require.Equal(t, []any{"attached", task.String(), "result_expired"}, []any{answer["outcome"], answer["task_id"], answer["status"]})
	k.Later(25 * time.Hour)
	k.Exec("select pawl.sweep(100)")
	require.Equal(t, "created", k.Request("id/long", key)["outcome"])

	k.endStep(k.Submit("id/short", key), done)
	require.Equal(t, "created", k.Request("id/short", key)["outcome"])
}

func TestRepliesTellWhatBecameOfARequest(t *testing.T) {
	k := newKit(t)
	identityTemplates(k)
	k.Exec("select pgmq.create('answers')")
	id := uuid.Must(uuid.NewV7())
	task := k.Submit("id/plain", object{"key": "k", "input": aKeyInput, "reply_to": "answers", "request_id": id.String()})
	require.Equal(t, id, task)
	k.Request("id/plain", object{"key": "k", "input": aKeyInput, "reply_to": "answers"})
	k.Request("id/plain", object{"key": "k", "input": 8, "reply_to": "answers"})
	k.endStep(task, done)
	k.Request("id/plain", object{"key": "k", "input": aKeyInput, "reply_to": "answers"})
	k.Request("id/plain", object{"key": "k", "input": aKeyInput, "reply_to": "gone"})
	replies := list[object](k, "select message from pgmq.q_answers order by msg_id")
	var told []string
	for _, r := range replies {
		require.Equal(t, task.String(), r["task_id"])
		require.NotEmpty(t, r["request_id"])
		told = append(told, fmt.Sprint(r["outcome"], " ", r["status"], " ", r["result"] != nil))
	}
	require.Equal(t, []string{"attached running false", "rejected running false", "created completed true", "attached completed true"}, told)
	require.Equal(t, []string{"reply queue missing"}, list[string](k, "select reason from pawl.absorbed where queue = 'gone'"))
}

func TestRepeatedRequestMeetsItsOwnTask(t *testing.T) {
	for _, key := range []object{nil, {"key": "k"}} {
		t.Run(fmt.Sprint(key), func(t *testing.T) {
			k := newKit(t)
			identityTemplates(k)
			id := object{"request_id": uuid.Must(uuid.NewV7()).String(), "input": aKeyInput}
			task := k.Submit("id/plain", key, id)
			again := k.Request("id/plain", merged(key, id))
			require.Equal(t, []any{"attached", task.String()}, []any{again["outcome"], again["task_id"]})
			other := k.Request("id/plain", merged(key, id, object{"input": object{"amount": 2}}))
			require.Equal(t, []any{"rejected", "TaskInputMismatch"}, []any{other["outcome"], other["error"].(object)["error"]})
			k.endStep(task, failed)
			require.Equal(t, "attached", k.Request("id/plain", merged(key, id))["outcome"], "a repeat never opens the next epoch")
			require.Equal(t, 1, get[int](k, "select count(*) from pawl.tasks"))
		})
	}
}

func merged(all ...object) object {
	one := object{}
	for _, o := range all {
		for k, v := range o {
			one[k] = v
		}
	}
	return one
}

func TestDuplicatesWithinOneBatch(t *testing.T) {
	k := newKit(t)
	plain := identityTemplates(k)
	id := uuid.Must(uuid.NewV7()).String()
	k.Exec(`select pgmq.send_batch('orchestration_task_requests', array[
		'{"key": "k", "input": 1}', '{"key": "k", "input": 1}', '{"key": "k", "input": 2}', '{"key": "k", "input": 1, "on_duplicate": "reject"}']::jsonb[]
		|| array_fill(jsonb_build_object('request_id', $1::text, 'input', 3), array[2]) || jsonb_build_object('request_id', $1::text, 'input', 4)
		|| array_fill('{"input": 5}'::jsonb, array[2]))`, id)
	outcomes := get[[]object](k, `select pawl.process_task_requests((select jsonb_agg(jsonb_build_object('msg_id', msg_id, 'template_id', $1::int))
		from pgmq.q_orchestration_task_requests))`, plain)
	first := outcomes[0]["msg_id"].(float64)
	for _, o := range outcomes {
		first = min(first, o["msg_id"].(float64))
	}
	told := map[float64]string{}
	for _, o := range outcomes {
		kind := ""
		if e, ok := o["error"].(object); ok {
			kind = " " + e["error"].(string)
		} else if o["outcome"] == "attached" {
			kind = " " + o["status"].(string)
		}
		told[1+o["msg_id"].(float64)-first] = o["outcome"].(string) + kind
	}
	require.Equal(t, map[float64]string{1: "created", 2: "attached running", 3: "rejected TaskInputMismatch", 4: "rejected TaskAlreadyExists",
		5: "created", 6: "attached running", 7: "rejected TaskInputMismatch", 8: "created", 9: "created"}, told)
	require.Equal(t, 4, get[int](k, "select count(*) from pawl.tasks"))
	k.sound()
}
