package sql_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

var garbageHeaders = []string{
	`{"lease_ms": "soon"}`, `{"lease_ms": -1}`, `{"lease_ms": 1e131071}`, `{"lease_ms": 99999999999999}`, `{"lease_ms": {}}`, `{"bytes": "many"}`,
	`{"bytes": -5}`, `{"bytes": 99999999999999999999}`, `{"max_deliveries": "x"}`, `{"timeout_ms": "x"}`, `{"claim": "x"}`, `{"traceparent": 7}`,
	`[1, "lease_ms"]`, `"lease_ms"`, `7`, `null`,
}

// Whoever may send a message may write anything beside it. It is read like any other and ends like any other.
func TestHeadersOfStrangersStopNoQueue(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	queues := []string{"orchestration_step_results", "orchestration_step_enqueues", "orchestration_task_finalizations",
		"orchestration_task_requests", queue}
	for _, h := range garbageHeaders {
		for _, q := range queues {
			k.Exec("select pgmq.send($1, '{}'::jsonb, $2::jsonb)", q, h)
		}
	}
	task := k.Submit("shop/one")
	require.Equal(t, []string{"a"}, k.work(queue))
	require.Equal(t, "complete", k.State(task))
	for _, q := range queues {
		require.Zero(t, get[int](k, "select count(*)::int from pgmq.q_"+q), q)
	}
	k.sound()
}

// The engine's own messages are read for as long as the engine says, not their sender.
func TestASenderSetsNoLeaseOfTheEngine(t *testing.T) {
	k := newKit(t)
	for range 2 {
		k.Exec(`select pgmq.send('orchestration_task_requests', '{}'::jsonb, '{"lease_ms": 900000000, "bytes": 900000000}'::jsonb)`)
	}
	require.Equal(t, 2, get[int](k, "select cardinality(pawl_queues.read_orchestration_task_requests(10, 30000, 1000000))"))
	require.Equal(t, 2, get[int](k, `select count(*)::int from pgmq.q_orchestration_task_requests
		where vt between clock_timestamp() and clock_timestamp() + interval '31 s'`))
}

// Of a request's headers its task's messages carry the trace on and nothing else: a producer sets no lease, no limit.
func TestARequestsHeadersAreItsTraceOnly(t *testing.T) {
	const trace = `{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b", "baggage": "c=d"}`
	submits := map[string]func(k *kit, headers string){
		"through the queue": func(k *kit, headers string) {
			k.Exec(`select pgmq.send('orchestration_task_requests', '{"template": "shop/one", "input": {}}', $1::jsonb)`, headers)
			k.Rest()
		},
		"at once": func(k *kit, headers string) {
			k.Exec(`select pawl.submit_requests(array[jsonb_build_object('v', 1, 'request_id', $1::text, 'template', 'shop/one', 'input', '{}'::jsonb)::text],
				array[$2])`, uuid.NewString(), headers)
			require.Zero(k, get[int](k, "select count(*)::int from pgmq.q_orchestration_task_requests"))
		},
	}
	for name, submit := range submits {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/one", nil, step("a"))
			for _, headers := range append(garbageHeaders, `{"claim": true}`, `{"max_deliveries": 0, "timeout_ms": 1, "lease_ms": 1, "by": "me"}`) {
				submit(k, headers)
			}
			submit(k, trace)
			require.Empty(t, list[string](k, "select headers::text from pgmq.q_work_queue where headers is not null and headers <> $1", trace))
			require.Equal(t, 1, get[int](k, "select count(*)::int from pgmq.q_work_queue where headers = $1", trace))
			require.Len(t, k.Claim(queue), len(garbageHeaders)+3)
		})
	}
}

// What a claim brings from elsewhere counts towards its size as well.
func TestAClaimOfLargeInputsIsBounded(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	var list []string
	for range 1000 {
		list = append(list, uuid.NewString())
	}
	for range 40 {
		k.Submit("shop/one", object{"input": object{"list": list}})
	}
	require.Equal(t, 32, get[int](k, "select json_array_length(pawl.claim_steps('work_queue', 40, 'w'))"), "4 MiB at 128 kB each, and the one that reaches it")
	require.Equal(t, 8, get[int](k, "select json_array_length(pawl.claim_steps('work_queue', 40, 'w'))"))
}

// The end of a task does not depend on who hears of it.
func TestAReplyThatIsRefusedKeepsNoTaskOpen(t *testing.T) {
	for name, c := range map[string]struct{ spoil, reason string }{
		"dropped":          {"select pgmq.drop_queue('answers')", "reply queue missing"},
		"its table is":     {"drop table pgmq.q_answers", "reply refused: %"},
		"its owner raises": {"alter table pgmq.q_answers add check (message->>'outcome' <> 'created')", "reply refused: %"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/one", nil, step("a"))
			k.Exec("select pgmq.create('answers')")
			task := k.Submit("shop/one", object{"reply_to": "answers"})
			k.Exec(c.spoil)
			k.work(queue)
			require.Equal(t, "complete", k.State(task))
			require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.absorbed where queue = 'answers' and task_id = $1 and reason like $2", task, c.reason))
			k.sound()
		})
	}
}

// A result that comes as a message has the bound of one that is reported: as text, whatever few bytes hold it.
func TestResultsThatAreTooLargeAreRefusedOnTheQueueToo(t *testing.T) {
	for name, result := range map[string]string{
		"text":    `select to_jsonb(repeat('x', 1100000))`,
		"numbers": `select jsonb_agg(1e131071::numeric) from generate_series(1, 9)`,
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/one", nil, step("a"))
			task := k.Submit("shop/one")
			k.Exec(`select pgmq.send('orchestration_step_results', jsonb_build_object('task_id', $1::uuid, 'step', 'a', 'attempt', 1, 'status', 'complete',
				'result', (`+result+`)))`, task)
			k.Rest()
			require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.dead_letters where reason like 'not a step result%at most 1 MiB%'"))
			require.Equal(t, "dead_letter", k.stepError(task, "a"), "its attempt has ended with it")
			require.Equal(t, "error", k.State(task))
			require.Empty(t, k.work(queue))
		})
	}
}
