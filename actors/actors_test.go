package actors_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

const completed = `select count(*) from pawl.tasks where state = 'complete'`

func TestRequestsBecomeFinishedTasks(t *testing.T) {
	t.Parallel()
	for name, staged := range map[string]bool{"direct": false, "staged": true} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.exec(`update pawl.engine_settings set staged = $1`, staged)
			h.start(actors.Config{})
			h.start(actors.Config{}) // another orchestrator
			h.work()
			for range 30 {
				h.request()
			}
			h.eventually(30, completed)
			require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
			require.Zero(t, h.count(`select count(*) from pgmq.q_orchestration_task_finalizations`))
		})
	}
}

// R13: what a transaction leaves of a batch is the next one's, at once, and no delivery more.
func TestABatchOverTheBoundOfATransactionIsWorkedInSeveral(t *testing.T) {
	h := newHouse(t)
	h.exec(`update pawl.engine_settings set max_steps_per_transaction = 5`)
	for range 30 {
		h.request()
	}
	h.start(actors.Config{Settings: actors.Settings{VisibilityTimeout: 10 * time.Minute, IdlePoll: time.Hour}})
	h.eventually(30, `select count(*) from pawl.tasks`)
	h.eventually(15, `select count(distinct xmin::text) from pawl.tasks`)
	require.Zero(t, h.count(`select count(*) from pgmq.q_orchestration_task_requests`))
}

func TestGarbageOnEveryQueueEndsAsDeadLettersAndWorkGoesOn(t *testing.T) {
	h := newHouse(t)
	garbage := []string{`null`, `[]`, `[1, {"a": 2}]`, `"text"`, `17`, `true`, `{}`, `{"task_id": 5}`, `{"task_id": null}`,
		`{"v": "x"}`, `{"template": "house/pare", "input": {}}`, `{"template": "house/pair", "input": {"n": "x"}}`,
		`{"template": "house/pair", "input": {}, "colour": "red"}`, `{"template": "house/pair", "input": 1e100000}`,
		`{"status": "complete", "attempt": 1e100000}`, `{"task_id": "x", "step": "first", "attempt": 1, "status": "complete"}`,
		`{"deep": ` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`,
		`{"template": "house/pair", "input": "` + strings.Repeat("x", 2<<20) + `"}`,
		// As text these are more than two gigabytes.
		`{"template": "house/pair", "input": [` + strings.Repeat("1e131071,", 20_000) + `0]}`,
		`{"template": "house/pair", "input": [` + strings.Repeat("1e-16383,", 140_000) + `0]}`}
	queues := []string{"orchestration_task_requests", "orchestration_step_enqueues", "orchestration_step_results",
		"orchestration_task_finalizations"}
	for _, queue := range queues {
		for _, body := range garbage {
			h.send(queue, body)
		}
	}
	_, err := h.db.Exec(t.Context(), "select pgmq.send('orchestration_task_requests', null::jsonb)")
	require.NoError(t, err)
	h.start(actors.Config{})
	h.work()
	h.request()
	h.eventually(1, completed)
	h.eventually(len(garbage)*len(queues)+1, `select count(*) from pawl.dead_letters where reason <> ''`)
	require.Equal(t, 1, h.count(`select count(*) from pawl.dead_letters where reason like '%the message is null, not a JSON object'`))
	for _, queue := range queues {
		require.Zero(t, h.count(`select count(*) from pgmq.q_`+queue), queue)
	}
	require.Equal(t, 1, h.count(`select count(*) from pawl.dead_letters where reason like '%house/pare is not applied; did you mean "house/pair"?'`))
}

func TestAPanicRestartsTheActorAndItsMessagesComeBack(t *testing.T) {
	h := newHouse(t)
	var left atomic.Int32
	left.Store(2)
	c := h.start(actors.Config{
		Settings: actors.Settings{VisibilityTimeout: 500 * time.Millisecond},
		Work: &faulty{h.db, func(sql string, _ []any) error {
			if strings.Contains(sql, "process_task_requests") && left.Add(-1) >= 0 {
				panic("a message of the producer")
			}
			return nil
		}},
	})
	h.work()
	h.request()
	h.eventually(1, completed)
	require.Equal(t, 2, c.restarts("task_request"))
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
}

func TestAMessageThatPanicsAgainAndAgainEndsAloneAsADeadLetter(t *testing.T) {
	h := newHouse(t)
	bad := h.send("orchestration_step_results", `{"task_id": "00000000-0000-0000-0000-000000000001", "step": "x", "attempt": 1, "status": "complete"}`)
	good := make([]int64, 0, 3)
	for range 3 {
		good = append(good, h.send("orchestration_step_results", `{"task_id": "00000000-0000-0000-0000-000000000002", "step": "x", "attempt": 1, "status": "complete"}`))
	}
	c := h.start(actors.Config{
		Settings: actors.Settings{VisibilityTimeout: 300 * time.Millisecond, MaxDeliveries: 5},
		Work: &faulty{h.db, func(sql string, args []any) error {
			if strings.Contains(sql, "apply_step_results") && slices.Contains(args[0].([]int64), bad) {
				panic("poison")
			}
			return nil
		}},
	})
	h.eventually(1, `select count(*) from pawl.dead_letters where msg_id = $1 and reason like 'failed alone after%panicked%'`, bad)
	h.eventually(0, `select count(*) from pgmq.q_orchestration_step_results`)
	// Their task is unknown, which is another dead letter: it was the engine's decision, not the delivery's.
	require.Equal(t, len(good), h.count(`select count(*) from pawl.dead_letters where msg_id = any ($1) and reason not like 'failed alone%'`, good))
	require.Positive(t, c.restarts("result_processor"))
}

func TestWhatRaisesAloneIsADeadLetterAndItsBatchIsNot(t *testing.T) {
	h := newHouse(t)
	h.exec(`create function pawl.refuse() returns trigger language plpgsql as $$
		begin if new.correlation_id = 'poison' then raise exception 'poisoned'; end if; return new; end $$`)
	h.exec(`create trigger refuse before insert on pawl.tasks for each row execute function pawl.refuse()`)
	for range 5 {
		h.request()
	}
	bad := h.send("orchestration_task_requests", `{"template": "house/pair", "input": {}, "correlation_id": "poison"}`)
	for range 5 {
		h.request()
	}
	c := h.start(actors.Config{})
	h.work()
	h.eventually(10, completed)
	h.eventually(1, `select count(*) from pawl.dead_letters where msg_id = $1 and reason = 'raised P0001: poisoned'`, bad)
	require.Equal(t, 1, h.count(`select count(*) from pawl.dead_letters`))
	require.Equal(t, 1, c.value(c.metrics.DeadLetters.WithLabelValues("orchestration_task_requests")))
}

func TestInfrastructureErrorsLeaveTheMessage(t *testing.T) {
	h := newHouse(t)
	var refused atomic.Int32
	h.start(actors.Config{
		Settings: actors.Settings{VisibilityTimeout: 3 * time.Second, MaxDeliveries: 2}, // long enough for a busy machine: a timeout alone would count
		Work: &faulty{h.db, func(sql string, _ []any) error {
			if strings.Contains(sql, "process_task_requests") && refused.Add(1) <= 6 {
				return &pgconn.PgError{Code: []string{"40P01", "55P03", "40001", "53300", "25006", "57P01"}[refused.Load()%6]}
			}
			return nil
		}},
	})
	h.work()
	h.request()
	h.eventually(1, completed)
	require.GreaterOrEqual(t, refused.Load(), int32(6))
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
}

func TestALockedTaskHoldsUpItsOwnMessagesAlone(t *testing.T) {
	h := newHouse(t)
	h.exec(`update pawl.engine_settings set staged = true`) // every hop takes the tasks' rows in a consumer
	locked, free := h.request(), h.request()
	c := h.start(actors.Config{Work: newPool(t, h.url, `set lock_timeout = 100`), Settings: actors.Settings{VisibilityTimeout: time.Second}})
	h.eventually(2, `select count(*) from pawl.tasks`)
	tx, err := h.db.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from pawl.tasks where task_id = $1 for update`, locked)
	require.NoError(t, err)
	h.work()
	h.eventually(1, `select count(*) from pawl.tasks where task_id = $1 and state = 'complete'`, free)
	require.NoError(t, tx.Commit(t.Context()))
	h.eventually(2, completed)
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
	require.Zero(t, c.restarts("result_processor"))
}

func TestNotificationsWakeTheActors(t *testing.T) {
	h := newHouse(t)
	listener, err := pgmq.NewListener(pgmq.ListenerConfig{Connect: connect(h.url), Probe: h.db})
	require.NoError(t, err)
	require.NoError(t, listener.Start(t.Context()))
	t.Cleanup(listener.Stop)
	h.start(actors.Config{Listener: listener, Settings: actors.Settings{IdlePoll: time.Hour, ProvenPoll: time.Hour}})
	h.work()
	require.Eventually(t, listener.Proven, patience, 10*time.Millisecond)
	for n := range 3 {
		h.request()
		h.eventually(n+1, completed)
	}
}

func TestARequestOfANewerVersionWaitsForANewerProgram(t *testing.T) {
	h := newHouse(t)
	id := h.send("orchestration_task_requests", `{"v": 2, "flavour": "new"}`)
	h.start(actors.Config{})
	h.eventually(1, `select count(*) from pgmq.q_orchestration_task_requests where msg_id = $1 and vt > clock_timestamp() + interval '40 s'`, id)
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
}

func TestAHandlerWithoutATemplateMakesAOneStepTask(t *testing.T) {
	h := newHouse(t)
	h.start(actors.Config{})
	h.send("orchestration_task_requests", `{"namespace": "house", "handler": "house.once", "input": {"a": 1}}`)
	h.work()
	h.eventually(1, completed)
	require.Equal(t, 1, h.count(`select count(*) from pawl.steps where handler = 'house.once' and queue = 'house_queue'`))
}

func TestStartWithoutADatabaseIsAnError(t *testing.T) {
	t.Parallel()
	_, err := actors.Start(t.Context(), actors.Config{})
	require.ErrorContains(t, err, "set Work")
	require.NotErrorIs(t, err, pgx.ErrNoRows)
}
