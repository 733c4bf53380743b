package sql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
)

const anID = "018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"

// undecided are requests that only the task-request actor can judge.
var undecided = map[string]object{
	"a key":                     plain(object{"key": "k"}),
	"a null key":                plain(object{"key": null}),
	"on_duplicate":              plain(object{"on_duplicate": "attach"}),
	"a start time":              plain(object{"run_at": "2100-01-01T00:00:00Z"}),
	"a start time that is past": plain(object{"run_at": "2000-01-01T00:00:00Z"}),
	"a reply":                   plain(object{"reply_to": "work_queue"}),
	"an unknown field":          plain(object{"imput": 1}),
	"a field without a name":    plain(object{"": 1}),
	"capitals":                  plain(object{"Template": "sub/one", "template": nil}),

	"neither template nor handler": plain(object{"template": nil}),
	"template and handler":         ofHandler(object{"template": "sub/one"}),
	"a namespace beside template":  plain(object{"namespace": "sub"}),
	"a queue beside template":      plain(object{"queue": "work_queue"}),
	"an empty template":            plain(object{"template": ""}),
	"an empty handler":             ofHandler(object{"handler": ""}),
	"an empty namespace":           ofHandler(object{"namespace": ""}),
	"an empty queue":               ofHandler(object{"queue": ""}),
	"an empty requester":           plain(object{"requester": ""}),
	"an empty correlation id":      plain(object{"correlation_id": ""}),

	"a null template":               plain(object{"template": null}),
	"a list of a template":          plain(object{"template": []any{"sub/one"}}),
	"a list of a handler":           ofHandler(object{"handler": []any{"send"}}),
	"a numeric correlation id":      plain(object{"correlation_id": 1}),
	"a list of a correlation id":    plain(object{"correlation_id": []any{"c"}}),
	"an empty list for a requester": plain(object{"requester": []any{}}),
	"an object for a requester":     plain(object{"requester": object{"name": "anna"}}),
	"a null requester":              plain(object{"requester": null}),
	"no tags":                       plain(object{"tags": null}),
	"a list of tags":                plain(object{"tags": []any{"a"}}),
	"a text of tags":                plain(object{"tags": "a"}),
	"a tag that is a number":        plain(object{"tags": object{"a": "b", "n": 1}}),
	"a tag that is null":            plain(object{"tags": object{"n": null}}),
	"a tag that is a list":          plain(object{"tags": object{"n": []any{"a"}}}),
	"a tag that is an empty list":   plain(object{"tags": object{"n": []any{}}}),
	"a tag that is an object":       plain(object{"tags": object{"n": object{"a": "b"}}}),

	"no input":                            plain(object{"input": nil}),
	"no id":                               plain(object{"request_id": nil}),
	"a null id":                           plain(object{"request_id": null}),
	"an empty id":                         plain(object{"request_id": ""}),
	"the nil id":                          plain(object{"request_id": uuid.Nil.String()}),
	"a list of ids":                       plain(object{"request_id": []any{anID}}),
	"an id without dashes":                plain(object{"request_id": strings.ReplaceAll(anID, "-", "")}),
	"an id in braces":                     plain(object{"request_id": "{" + anID + "}"}),
	"an id with its scheme":               plain(object{"request_id": "urn:uuid:" + anID}),
	"an id with a blank":                  plain(object{"request_id": anID + " "}),
	"an id with a line's end":             plain(object{"request_id": anID + "\n"}),
	"dashes at other places":              plain(object{"request_id": "018f-3c2e-7b1a-7c3d-9e4f5a6b7c8d9e0f"}),
	"dashes where none may be":            plain(object{"request_id": "018f3c2e7b1a7c3d9e4f5a6b7c8d9e0f----"}),
	"an id that is not hex":               plain(object{"request_id": "g" + anID[1:]}),
	"an id with a digit of other scripts": plain(object{"request_id": "٠" + anID[1:]}),

	"a newer version":     plain(object{"v": 2}),
	"version 0":           plain(object{"v": 0}),
	"a version of text":   plain(object{"v": "1"}),
	"a null version":      plain(object{"v": null}),
	"a version of others": plain(object{"v": []any{1}}),

	"input nested too deep":        plain(object{"input": nested(64)}),
	"a number of 65 characters":    plain(object{"input": number(strings.Repeat("7", 65))}),
	"a fraction of 65":             plain(object{"input": number("0." + strings.Repeat("7", 63))}),
	"a number that grows in jsonb": plain(object{"input": number("1e64")}),
	"a number that grows small":    plain(object{"input": number("1e-64")}),
	"the longest exponent":         plain(object{"input": number("1e999")}),
	"a long number of many bytes":  plain(object{"input": []any{number("1e64"), strings.Repeat("m", 600)}}),
	"more than 1 MiB":              plain(object{"input": strings.Repeat("m", messaging.MaxBody)}),
	"1 MiB of tags":                plain(object{"tags": object{"m": strings.Repeat("m", messaging.MaxBody)}}),
	"1 MiB in jsonb alone":         plain(object{"input": slices.Repeat([]any{number("1e60")}, 20_000)}),

	"an unknown template":       plain(object{"template": "sub/none"}),
	"an unknown namespace":      plain(object{"template": "none/one"}),
	"an unknown version":        plain(object{"template": "sub/one@9"}),
	"an empty version":          plain(object{"template": "sub/one@"}),
	"a template's name alone":   plain(object{"template": "one"}),
	"a template with a blank":   plain(object{"template": " sub/one"}),
	"a template with a line":    plain(object{"template": "sub/one\n"}),
	"a template of three parts": plain(object{"template": "sub/one/a"}),
	"two versions":              plain(object{"template": "sub/one@1@1"}),
	"an ad-hoc template's name": plain(object{"template": "default/send"}),
	"an ad-hoc version":         plain(object{"template": "default/send@adhoc:default_queue"}),
	"an unknown handler":        ofHandler(object{"handler": "receive"}),
	"a template for a handler":  ofHandler(object{"handler": "one", "namespace": "sub"}),
	"a handler elsewhere":       ofHandler(object{"queue": "other_queue"}),
	"a handler of others":       ofHandler(object{"namespace": "other"}),
}

// number is a JSON number as it is spelled.
type number string

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// nested is lists and objects in one another.
func nested(depth int) any {
	var value any = "the bottom"
	for n := range depth {
		if n%2 == 0 {
			value = []any{value}
		} else {
			value = object{"in": value}
		}
	}
	return value
}

func TestRequestsThatHaveToBeDecidedGoToTheQueue(t *testing.T) {
	k := submitKit(newKit(t))
	for name, body := range undecided {
		k.queued(texts(k, body)...)
		require.Zero(t, get[int](k, "select count(*) from pawl.tasks"), name)
	}
	for _, text := range []string{
		`null`, `[]`, `{}`, `"text"`, `1`, `true`, `[{"request_id": "` + anID + `", "template": "sub/one", "input": {}}]`,
		`{"request_id": "` + anID + `", "template": "sub/one", "input": {}, "v": 1.0}`,
		`{"request_id": "` + anID + `", "template": "sub/one", "input": {}, "v": 10e-1}`,
		`{"template": "sub/one", "request_id": "` + anID + `", "input": {}, "template": "sub/none"}`,
		`{"template": "sub/one", "request_id": "` + anID + `", "input": {}` + strings.Repeat(" ", messaging.MaxBody) + `}`,
	} {
		k.queued(text)
	}
	require.Nil(t, k.submit(plain()), "and the kit's plain request is one")
}

func TestLimitsOfPlainRequestsHoldAtTheirEdges(t *testing.T) {
	k := submitKit(newKit(t))
	for name, input := range map[string]any{
		"nested": nested(63), "a number": number(strings.Repeat("7", 64)), "a fraction": number("-0." + strings.Repeat("7", 61)),
		"an exponent": number("1e63"), "a small exponent": number("1e-62"),
		"text": strings.Repeat("m", messaging.MaxBody-200),
	} {
		require.Nil(t, k.submit(plain(object{"input": input})), name)
	}
}

// Settings and templates that make a plain request one that has to be decided.
func TestTemplatesAndSettingsThatSQLAloneDoesNotJudge(t *testing.T) {
	for name, c := range map[string]struct {
		fields object
		step   object
		sql    string
		body   object
	}{
		"an input schema":                {fields: object{"input_schema": object{"type": "object"}}},
		"a schema that takes all":        {fields: object{"input_schema": object{}}},
		"strict identity":                {fields: object{"identity": object{"strategy": "strict"}}},
		"a key with each request":        {fields: object{"identity": object{"strategy": "caller_provided"}}},
		"a step's key":                   {step: object{"key": "${input.k}"}},
		"a parked template":              {sql: "update pawl.templates set parked_reason = 'no janitor'"},
		"staged":                         {sql: "update pawl.engine_settings set staged = true"},
		"results through the queue":      {sql: "update pawl.engine_settings set direct = false"},
		"more steps than the bound":      {sql: "update pawl.engine_settings set max_steps_per_transaction = 1"},
		"a queue that is gone":           {sql: "drop table pgmq.q_case_queue"},
		"a newer version is none":        {sql: `select pawl.register_template(definition || '{"version": "2", "input_schema": {}}') from pawl.templates where name = 'case'`},
		"a handler's queue is gone":      {sql: "drop table pgmq.q_default_queue", body: ofHandler()},
		"a handler's template is parked": {sql: "update pawl.templates set parked_reason = 'no janitor'", body: ofHandler()},
	} {
		t.Run(name, func(t *testing.T) {
			k := submitKit(newKit(t))
			k.Template("sub/case", c.fields, step("a", merged(object{"queue": "case_queue"}, c.step)), step("b: a"))
			body := c.body
			if body == nil {
				body = plain(object{"template": "sub/case"})
			}
			if c.sql != "" {
				tx, err := k.DB.Begin(k.Context())
				require.NoError(t, err)
				require.Nil(t, kitOn(t, tx, nil).submit(body), "without that it is plain")
				require.NoError(t, tx.Rollback(k.Context()))
				k.Exec(c.sql)
			}
			k.queued(texts(k, body)...)
			k.queued(texts(k, plain(), body, plain())...) // one that is not plain takes all with it
		})
	}
}

func TestABatchIsPlainUpToTheBoundOfSteps(t *testing.T) {
	k := submitKit(newKit(t))
	k.Exec("update pawl.engine_settings set max_steps_per_transaction = 9")
	four, five := object{"template": "sub/diamond@1"}, object{"template": "sub/diamond"}
	require.Nil(t, k.submit(plain(four), plain(five)))
	k.queued(texts(k, plain(five), plain(five))...)
	k.queued(texts(k, plain(four), plain(four), plain(), plain())...)
	require.Nil(t, k.submit(plain(four), plain(four), ofHandler()))
}

func TestARepeatedIdTakesItsBatchToTheQueue(t *testing.T) {
	k := submitKit(newKit(t))
	id := object{"request_id": anID}
	k.queued(texts(k, plain(), plain(id), plain(id), ofHandler())...)
	k.queued(texts(k, plain(id), plain(id, object{"request_id": strings.ToUpper(anID), "input": 1}))...)
	require.Nil(t, k.submit(plain(id)))
	for _, again := range []object{id, {"request_id": strings.ToUpper(anID)}, merged(id, object{"input": 7})} {
		k.queued(texts(k, plain(), plain(again), plain())...)
	}
	k.Exec("delete from pgmq.q_orchestration_task_requests where message->>'handler' is not null")
	k.Rest() // the actor's call keeps what the id promised: one task, and every other request its own
	require.Equal(t, 1, get[int](k, "select count(*) from pawl.tasks where task_id = $1", anID))
	require.Equal(t, 1+1+6, get[int](k, "select count(*) from pawl.tasks"))
	require.Zero(t, get[int](k, "select count(*) from pgmq.q_orchestration_task_requests"))
	k.sound()
}

func TestABatchOfWhichOneRaisesLeavesNothingHalfMade(t *testing.T) {
	k := submitKit(newKit(t))
	k.Template("sub/broken", nil, step("a"), step("b", object{"queue": "broken_queue"}))
	k.Exec("drop table pgmq.q_broken_queue")
	k.queued(texts(k, plain(), plain(object{"template": "sub/broken"}), plain(object{"template": "sub/diamond"}))...)
	require.Equal(t, []string{"held 0", "audit 0", "identities 0"}, list[string](k, `select 'held ' || count(*) from pawl.held_steps
		union all select 'audit ' || count(*) from pawl.audit union all select 'identities ' || count(*) from pawl.task_identities`))
	require.Nil(t, k.submit(plain()))
}

// What a session inserts first must be the lowest id, else two batches could wait for each other.
func TestBatchesTakeTheirIdsInOneOrder(t *testing.T) {
	k := submitKit(newCommittingKit(t))
	low, high := plain(object{"request_id": "01" + uuid.NewString()[2:]}), plain(object{"request_id": "f1" + uuid.NewString()[2:]})
	first, batch, last := k.begin(), k.begin(), k.begin()
	batchPID, lastPID := batch.pid(), last.pid()
	require.Nil(t, first.submit(high))
	waits := batch.start(submitRequests, texts(k, high, low), nil)
	k.untilWaiting(batchPID)
	also := last.start(submitRequests, texts(k, low), nil)
	k.untilWaiting(lastPID) // for the batch, which has the low id and waits for the high one
	first.commit()
	batch.ended(waits)
	batch.commit()
	last.ended(also)
	last.commit()
	require.Equal(t, 2, get[int](k, "select count(*) from pawl.tasks"))
	require.Equal(t, 2, get[int](k, "select count(*) from pgmq.q_orchestration_task_requests"))
	k.Rest()
	require.Equal(t, 2, get[int](k, "select count(*) from pawl.tasks"))
	k.sound()
}

func TestSessionsThatSubmitTheSameIdsInOppositeOrders(t *testing.T) {
	k := submitKit(newCommittingKit(t))
	const rounds, size = 15, 12
	for range rounds {
		bodies := make([]object, size)
		for i := range bodies {
			bodies[i] = plain(object{"template": "sub/diamond"})
		}
		forth := texts(k, bodies...)
		back := slices.Clone(forth)
		slices.Reverse(back)
		done := make(chan error, 2)
		for _, list := range [][]string{forth, back} {
			go func() {
				_, err := k.pool.Exec(k.Context(), submitRequests, list, nil)
				done <- err
			}()
		}
		k.ended(done)
		k.ended(done)
	}
	k.Rest()
	require.Equal(t, []int{rounds * size, 5 * rounds * size, rounds * size}, list[int](k, fmt.Sprintf(`select count(*) from pawl.tasks
		union all select count(*) from pawl.steps union all select count(*) from pawl.absorbed where queue = '%s'`, messaging.TaskRequests)))
	require.Zero(t, get[int](k, "select deadlocks::int from pg_stat_database where datname = current_database()"))
	k.sound()
}
