package sql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
)

// plain is a request that SQL alone can judge, with fields laid over it; nil takes a field away.
func plain(fields ...object) object {
	body := merged(append([]object{{"request_id": messaging.NewRequestID().String(), "template": "sub/one", "input": object{}}}, fields...)...)
	for name, value := range body {
		if value == nil {
			delete(body, name)
		}
	}
	return body
}

// ofHandler is plain for a handler.
func ofHandler(fields ...object) object {
	return plain(append([]object{{"template": nil, "handler": "send"}}, fields...)...)
}

var null = json.RawMessage("null")

const submitRequests = "select pawl.submit_requests($1::text[], $2::text[])"

func texts(k *kit, bodies ...object) []string {
	k.Helper()
	list := []string{}
	for _, body := range bodies {
		text, err := json.Marshal(body)
		require.NoError(k, err)
		list = append(list, string(text))
	}
	return list
}

// submit gives the ids of the messages, nil when the requests are tasks.
func (k *kit) submit(bodies ...object) []int64 {
	k.Helper()
	return get[[]int64](k, submitRequests, texts(k, bodies...), nil)
}

// queued asserts that a submit made messages alone, one for each request in their order.
func (k *kit) queued(texts ...string) {
	k.Helper()
	left := "select count(*) from pawl.tasks union all select count(*) from pawl.steps union all select count(*) from pgmq.q_work_queue"
	before := list[int](k, left)
	ids := get[[]int64](k, submitRequests, texts, nil)
	require.Len(k, ids, len(texts), "messages, not tasks")
	require.True(k, slices.IsSorted(ids))
	for i, text := range texts {
		require.True(k, get[bool](k, `select message = $2::text::jsonb and read_ct = 0 and vt <= clock_timestamp() and headers is null
			from pgmq.q_orchestration_task_requests where msg_id = $1`, ids[i], text), text)
	}
	require.Equal(k, before, list[int](k, left), "nothing half made")
}

// submitKit has the templates that the tests of submits share.
func submitKit(k *kit) *kit {
	k.Helper()
	k.Template("sub/one", nil, step("a"))
	k.Template("sub/diamond", object{"version": "1", "timeout_ms": 60_000}, diamond()...)
	k.Template("sub/diamond", object{"version": "2", "timeout_ms": 60_000}, append(diamond(), step("e: d", object{"lease_ms": 5000}))...)
	k.Template("sub/gated", nil, step("a", object{"queue": "gated_queue"}), step("b"))
	k.Exec("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 2}', 'ann', 'weak machine')")
	for _, at := range [][2]string{{"default", ""}, {"sub", ""}, {"default", "work_queue"}, {"sub", "work_queue"}} {
		k.Exec("select pawl.adhoc_template($1, 'send', nullif($2, ''))", at[0], at[1])
	}
	return k
}

// rows of a task: everything but ids, times and who did it. Times count from the request.
func (k *kit) rows(id uuid.UUID) []string {
	k.Helper()
	found := list[string](k, `
		select 'task ' || (to_jsonb(t) - '{requested_at,started_at,state_since,due_at,finalized_at}'::text[]
		  || jsonb_build_object('due', t.due_at - t.requested_at, 'started', t.started_at = t.requested_at))::text
		from pawl.tasks t where t.task_id = $1
		union all (select 'step ' || (to_jsonb(s) - '{state_since}'::text[])::text from pawl.steps s where s.task_id = $1 order by s.step)
		union all (select 'audit ' || (to_jsonb(a) - '{xid,at,processor}'::text[])::text from pawl.audit a
		  where a.task_id = $1 order by a.step nulls first, a.revision)
		union all (select 'held ' || (to_jsonb(h) - '{held_at}'::text[])::text from pawl.held_steps h where h.task_id = $1 order by h.step)
		union all select 'key ' || i::text from pawl.task_identities i where i.task_id = $1`, id)
	for _, queue := range list[string](k, "select queue from pawl.queues order by queue") {
		found = append(found, list[string](k, `select '`+queue+` ' || coalesce(headers::text, '') || message::text
			from pgmq.q_`+queue+` where message->>'task_id' = $1 order by msg_id`, id.String())...)
	}
	for i := range found {
		found[i] = strings.ReplaceAll(found[i], id.String(), "ID")
	}
	return found
}

var plainRequests = map[string]struct {
	body             object
	template, handed string // what it is found under
}{
	"a template":             {plain(), "sub/one", "1"},
	"its latest version":     {plain(object{"template": "sub/diamond"}), "sub/diamond", "2"},
	"a version":              {plain(object{"template": "sub/diamond@1"}), "sub/diamond", "1"},
	"a handler":              {ofHandler(), "default/send", "adhoc:default_queue"},
	"of a namespace":         {ofHandler(object{"namespace": "sub"}), "sub/send", "adhoc:sub_queue"},
	"on a queue":             {ofHandler(object{"queue": "work_queue"}), "default/send", "adhoc:work_queue"},
	"both":                   {ofHandler(object{"queue": "work_queue", "namespace": "sub"}), "sub/send", "adhoc:work_queue"},
	"its default queue":      {ofHandler(object{"queue": "default_queue"}), "default/send", "adhoc:default_queue"},
	"version 1":              {plain(object{"v": 1}), "sub/one", "1"},
	"words of the requester": {plain(object{"correlation_id": "c-1", "requester": "anna", "tags": object{"shop": "", "": "x"}}), "sub/one", "1"},
	"no input":               {plain(object{"input": null}), "sub/one", "1"},
	"any input":              {plain(object{"input": []any{1.5, "two", object{"deep": []any{[]any{}}}}}), "sub/one", "1"},
	"much input":             {plain(object{"input": strings.Repeat("much ", 20_000) + uuid.NewString()}), "sub/one", "1"},
	"capitals in its id":     {plain(object{"request_id": strings.ToUpper(uuid.NewString())}), "sub/one", "1"},
	"work behind a gate":     {plain(object{"template": "sub/gated"}), "sub/gated", "1"},
	"an entity claim":        {plain(object{"template": "billing/pay", "requester": "ann", "input": object{"invoice": "A-1"}}), "billing/pay", "1"},
}

func TestAPlainRequestIsATaskAtOnceAndTheSameAsThroughTheQueue(t *testing.T) {
	for name, c := range plainRequests {
		t.Run(name, func(t *testing.T) {
			k := submitKit(newKit(t))
			k.Invoices()
			headers := []string{`{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`}
			queued := messaging.NewRequestID()
			namespace, template, _ := strings.Cut(c.template, "/")
			outcomes := get[[]object](k, `select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id',
				pgmq.send('orchestration_task_requests', $1::jsonb, $2::text::jsonb), 'template_id', (select t.template_id from pawl.templates t
				where t.namespace = $3 and t.name = $4 and t.version = $5))), 'kit')`,
				merged(c.body, object{"request_id": queued.String()}), headers[0], namespace, template, c.handed)
			require.Equal(t, "created", outcomes[0]["outcome"])

			require.Nil(t, get[[]int64](k, submitRequests, texts(k, c.body), headers), "a task, not a message")
			id := uuid.MustParse(c.body["request_id"].(string))
			require.Equal(t, c.template+" "+c.handed, get[string](k,
				"select namespace || '/' || template || ' ' || version from pawl.tasks where task_id = $1", id))
			require.Equal(t, k.rows(queued), k.rows(id))
			require.Zero(t, get[int](k, "select count(*) from pgmq.q_orchestration_task_requests"))
			if name == "an entity claim" { // only one of them could have its row
				return
			}
			for _, queue := range []string{"work_queue", "default_queue", "sub_queue", "gated_queue", "work_queue"} {
				for k.Release(); len(k.work(queue)) > 0; k.Release() {
				}
			}
			require.Equal(t, "complete", k.State(id))
			require.Equal(t, k.rows(queued), k.rows(id))
			k.sound()
		})
	}
}

func TestManyPlainRequestsAreTasksTogether(t *testing.T) {
	k := submitKit(newKit(t))
	bodies := []object{plain(), plain(object{"template": "sub/diamond@1"}), ofHandler(), plain(object{"template": "sub/diamond"}),
		ofHandler(object{"queue": "work_queue"}), plain(), plain(object{"template": "sub/diamond@1"})}
	slices.SortFunc(bodies[2:], func(a, b object) int { return strings.Compare(b["request_id"].(string), a["request_id"].(string)) })
	require.Nil(t, k.submit(bodies...))
	for _, body := range bodies {
		id := uuid.MustParse(body["request_id"].(string))
		want := fmt.Sprint("default/", body["handler"])
		if body["handler"] == nil {
			want, _, _ = strings.Cut(body["template"].(string), "@")
		}
		require.Equal(t, want, get[string](k, "select namespace || '/' || template from pawl.tasks where task_id = $1", id))
	}
	require.Equal(t, []int{7, 17}, list[int](k, "select count(*) from pawl.tasks union all select count(*) from pawl.steps"))
	k.sound()
}

func TestNoRequestsAreNothing(t *testing.T) {
	k := submitKit(newKit(t))
	for _, setting := range []string{"staged = false", "staged = true"} {
		k.Exec("update pawl.engine_settings set " + setting)
		require.Nil(t, k.submit())
	}
	require.Equal(t, []int{0, 0}, list[int](k, "select count(*) from pawl.tasks union all select count(*) from pgmq.q_orchestration_task_requests"))
}

func TestWhatCannotBeReadIsRefusedAndNothingTaken(t *testing.T) {
	k := submitKit(newKit(t))
	good, other := texts(k, plain())[0], texts(k, plain(object{"key": "k"}))[0]
	deep := `{"input": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"
	for name, c := range map[string]struct {
		code            string
		bodies, headers any
	}{
		"a body that is no JSON":         {"22P02", []string{"{"}, nil},
		"an empty body":                  {"22P02", []string{""}, nil},
		"a zero byte":                    {"22P05", []string{`{"input": "\u0000"}`}, nil},
		"half a surrogate pair":          {"22P02", []string{`{"input": "\ud800"}`}, nil},
		"a bottomless body":              {"54001", []string{deep}, nil},
		"one of many":                    {"22P02", []string{good, "{", other}, nil},
		"a header that is no JSON":       {"22P02", []string{good}, []string{"{"}},
		"a header of another":            {"22P02", []string{good, other}, []string{"{}", "nul"}},
		"no bodies":                      {"22004", nil, nil},
		"no bodies for a header":         {"22004", nil, []string{"{}"}},
		"a missing body":                 {"22004", []*string{nil}, nil},
		"a missing body beside another":  {"22004", []*string{&good, nil}, nil},
		"more headers than plain bodies": {"22004", []string{good}, []*string{nil, nil}},
		"more headers than bodies":       {"22004", []string{other}, []string{"{}", "{}"}},
		"a header for nothing":           {"22004", []string{}, []string{"{}"}},
	} {
		k.refused(c.code, submitRequests, c.bodies, c.headers)
		require.Equal(t, []int{0, 0}, list[int](k, "select count(*) from pawl.tasks union all select count(*) from pgmq.q_orchestration_task_requests"), name)
	}
	k.refused("22004", "select pawl.submit_requests(array_fill($1::text, '{1}', '{-1}') || null::text, null)", other) // its place is 0
}

func TestMessagesOfRequestsKeepTheirOrderAndTheirHeaders(t *testing.T) {
	k := submitKit(newKit(t))
	bodies, headers := []object{}, []*string{}
	for i := range 50 {
		text := fmt.Sprintf(`{"traceparent": "t-%d"}`, i)
		bodies, headers = append(bodies, plain(object{"key": fmt.Sprint(49 - i)})), append(headers, &text)
	}
	headers = headers[:40] // the last ten have none
	headers[7] = nil
	ids := get[[]int64](k, submitRequests, texts(k, bodies...), headers)
	require.Len(t, ids, 50)
	for i, id := range ids {
		want := "none"
		if i < 40 && i != 7 {
			want = fmt.Sprintf("t-%d", i)
		}
		require.Equal(t, fmt.Sprintf("%d %s", 49-i, want), get[string](k, `select (message->>'key') || ' ' || coalesce(headers->>'traceparent', 'none')
			from pgmq.q_orchestration_task_requests where msg_id = $1`, id))
	}
}

func TestATraceReachesEveryStepOfAPlainRequest(t *testing.T) {
	k := submitKit(newKit(t))
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traced, bare := plain(object{"template": "sub/diamond"}), plain(object{"template": "sub/diamond"})
	require.Nil(t, get[[]int64](k, submitRequests, texts(k, bare, traced), []*string{nil, ptr(`{"traceparent": "` + parent + `"}`)}))
	require.Equal(t, parent, get[string](k, "select trace->>'traceparent' from pawl.tasks where task_id = $1", traced["request_id"]))
	require.True(t, get[bool](k, "select trace is null from pawl.tasks where task_id = $1", bare["request_id"]))
	seen := 0
	for range 5 {
		seen += get[int](k, `select count(*) from pgmq.q_work_queue where message->>'task_id' = $1 and headers->>'traceparent' = $2`,
			traced["request_id"], parent)
		require.Zero(t, get[int](k, `select count(*) from pgmq.q_work_queue where message->>'task_id' = $1 and headers ? 'traceparent'`, bare["request_id"]))
		k.Finish(queue, k.Claim(queue)...)
		k.Rest()
	}
	require.Equal(t, 5, seen)
}

func ptr[T any](value T) *T { return &value }

func TestPlainRequestsForAGatedQueueAreHeld(t *testing.T) {
	k := submitKit(newKit(t))
	gated := object{"template": "sub/gated"}
	first := plain(gated)
	require.Nil(t, k.submit(first, plain(gated), plain(gated), plain()))
	require.Equal(t, []int{3, 0, 4}, list[int](k, `select count(*) from pawl.held_steps where released_at is null
		union all select count(*) from pgmq.q_gated_queue union all select count(*) from pgmq.q_work_queue`))
	require.Equal(t, map[string]string{"a": "pending", "b": "enqueued"}, k.steps(uuid.MustParse(first["request_id"].(string))))
	k.Release()
	require.Len(t, k.Claim("gated_queue"), 2)
	k.sound()
}

func TestTheProducersRoleSubmitsAndNothingMore(t *testing.T) {
	k := submitKit(newRolesKit(t))
	producer, _ := k.login("pawl_producer")
	producer.Exec("create temp table trap (x int)")
	producer.Exec(`create function pg_temp.eq(text, text) returns boolean language plpgsql as 'begin insert into trap values (1); return true; end'`)
	producer.Exec("create operator pg_temp.= (leftarg = text, rightarg = text, function = pg_temp.eq)")
	producer.Exec("set search_path = pg_temp, pg_catalog")
	first, second := plain(object{"template": "sub/diamond"}), ofHandler()
	require.Nil(t, producer.submit(first, second))
	require.Len(t, producer.submit(plain(), plain(object{"key": "k"})), 2)
	require.Equal(t, []string{"send", "diamond"}, list[string](k, "select template from pawl.tasks order by task_id desc"))
	require.Zero(t, get[int](producer, "select count(*) from trap"))
	body := texts(k, plain())
	for sql, args := range map[string][]any{
		"select pawl.plain_requests($1::text[], null)":                                                 {body},
		"select pawl.is_plain_request($1::text::jsonb)":                                                {body[0]},
		"select pawl.create_tasks('{}')":                                                               nil,
		"select pawl.adhoc_template('default', 'other', null)":                                         nil,
		"select pawl.process_task_requests('[]')":                                                      nil,
		"insert into pawl.tasks (task_id) values (gen_random_uuid())":                                  nil,
		"select task_id from pawl.tasks":                                                               nil,
		"select pawl.cancel_task('" + first["request_id"].(string) + "', 'producer', 'no reason')":     nil,
		"select message from pgmq.q_orchestration_task_requests":                                       nil,
		"update pgmq.q_orchestration_task_requests set message = '{}'":                                 nil,
		"select pawl_queues.send_work_queue(array['{}'::jsonb], array[null::jsonb])":                   nil,
		"select pawl.claim_steps('work_queue', 1, 'w')":                                                nil,
		"select set_config('pawl.operator', 'x', false), pawl.settle_tasks('{}'::uuid[])":              nil,
		"select pawl.register_template('{\"namespace\": \"a\", \"name\": \"b\", \"version\": \"1\"}')": nil,
	} {
		producer.refused(denied, sql, args...)
	}
	stranger, _ := k.login()
	stranger.refused(denied, submitRequests, body, nil)
}

func TestOneIdInTwoSessionsIsOneTask(t *testing.T) {
	for _, commits := range []bool{true, false} {
		t.Run(fmt.Sprintf("first commits %v", commits), func(t *testing.T) {
			k := submitKit(newCommittingKit(t))
			a, b := plain(), plain(object{"template": "sub/diamond"})
			one, two := k.begin(), k.begin()
			pid := two.pid()
			require.Nil(t, one.submit(a, b))
			answer := make(chan []int64, 1)
			done := make(chan error, 1)
			go func() {
				var ids []int64
				rows, err := two.DB.Query(k.Context(), submitRequests, texts(k, b, a), nil)
				if err == nil && rows.Next() {
					err = rows.Scan(&ids)
					rows.Close()
				}
				answer <- ids
				done <- err
			}()
			k.untilWaiting(pid)
			if commits {
				one.commit()
			} else {
				require.NoError(t, one.DB.(interface{ Rollback(context.Context) error }).Rollback(k.Context()))
			}
			two.ended(done)
			two.commit()
			if ids := <-answer; commits {
				require.Len(t, ids, 2, "the actor tells the second that its tasks exist")
			} else {
				require.Nil(t, ids)
			}
			require.Equal(t, 2, get[int](k, "select count(*) from pawl.tasks"))
			k.Rest()
			require.Equal(t, 2, get[int](k, "select count(*) from pawl.tasks"))
			require.Equal(t, 6, get[int](k, "select count(*) from pawl.steps"))
			k.sound()
		})
	}
}
