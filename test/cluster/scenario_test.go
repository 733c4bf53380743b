package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
)

func TestTasksAreCreatedThroughDifferentInstancesAtOnce(t *testing.T) {
	t.Parallel()
	s := set(t, Config{Orchestrators: 3, Workers: 1, Environment: []string{"PAWL_BATCH=5"}})
	// One after the other, in small batches, so that every instance has its part of them.
	var all []uuid.UUID
	shares := make(map[string]int)
	require.Eventually(t, func() bool {
		all = append(all, request(t, s.Pool, 20, nil)...)
		rows, err := s.Pool.Query(t.Context(), `select processor, count(*) from pawl.audit where step is null and from_state is null group by 1`)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var processor string
			var n int
			require.NoError(t, rows.Scan(&processor, &n))
			shares[processor] = n
		}
		return len(shares) == 3 && len(all) >= 300
	}, patience, 50*time.Millisecond, "every instance creates tasks")
	awaitComplete(t, s, all)
	v := rest(t, s, nil, nil)
	require.Equal(t, len(all), v.Tasks)
	for processor, n := range shares {
		t.Logf("%s created %d %% of the first tasks", processor, 100*n/sum(shares))
	}
}

func sum(of map[string]int) (n int) {
	for _, one := range of {
		n += one
	}
	return n
}

func TestABurstOf25TasksInASecond(t *testing.T) {
	t.Parallel()
	s := set(t, Config{Orchestrators: 3, Workers: 2})
	var all []uuid.UUID
	ticker := time.NewTicker(40 * time.Millisecond)
	defer ticker.Stop()
	for range 25 {
		all = append(all, request(t, s.Pool, 1, nil)...)
		<-ticker.C
	}
	awaitComplete(t, s, all)
	v := rest(t, s, nil, nil)
	require.Equal(t, []int{25, 100, 100 + v.Reclaimed}, []int{v.Tasks, v.Steps, v.Handled})
}

func TestWhatIsWrittenThroughOneIsReadThroughAll(t *testing.T) {
	t.Parallel()
	s := set(t, Config{Orchestrators: 3, Workers: 2})
	clients := make([]*client.Client, 3)
	for i := range clients {
		m, err := s.AddClient()
		require.NoError(t, err)
		clients[i], err = client.New(client.Config{DatabaseURL: m.URL})
		require.NoError(t, err)
		t.Cleanup(clients[i].Close)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 9 {
		id, err := clients[i%3].Submit(ctx, client.Request{Template: Diamond, Key: fmt.Sprint("order-", i), Input: map[string]any{"ms": 1}})
		require.NoError(t, err)
		want, err := clients[(i+1)%3].Wait(ctx, id)
		require.NoError(t, err)
		require.EqualValues(t, "complete", want.State)
		for _, c := range clients {
			got, err := c.Get(ctx, id)
			require.NoError(t, err)
			require.Equal(t, want, got)
			listed, err := c.List(ctx, client.Filter{Key: fmt.Sprint("order-", i)})
			require.NoError(t, err)
			require.Equal(t, []client.Task{want}, listed)
		}
	}
	rest(t, s, nil, nil)
}

func TestTwoPickersNeverOverlap(t *testing.T) {
	t.Parallel()
	s := set(t, Config{Orchestrators: 2, Workers: 2})
	all := request(t, s.Pool, 200, nil)
	awaitComplete(t, s, all)
	v := rest(t, s, nil, nil)
	require.Equal(t, []int{200, 800}, []int{v.Tasks, v.Steps})
	// On a machine so busy that a lease ends before it is extended, a step may rightly be delivered again.
	require.Equal(t, 800+v.Reclaimed, v.Handled)
	entries, err := ReadLedger(s.LedgerFile)
	require.NoError(t, err)
	pickers := make(map[string]int)
	for _, e := range entries {
		pickers[e.Worker]++
	}
	t.Logf("steps by worker: %v", pickers)
}

func TestSixteenFinalizersMakeOneTransition(t *testing.T) {
	t.Parallel()
	const tasks, finalizers = 10, 16
	s := set(t, Config{Orchestrators: 1, Workers: 1})
	_, err := s.Pool.Exec(t.Context(), `update pawl.engine_settings set staged = true`)
	require.NoError(t, err)
	// The only orchestrator dies when all is done but the ends: the finalizations are held back until then.
	_, err = s.Pool.Exec(t.Context(), `create function pgmq.hold_back() returns trigger language plpgsql as $$
		begin new.vt := 'infinity'; return new; end $$;
		create trigger hold_back before insert on pgmq.q_orchestration_task_finalizations for each row execute function pgmq.hold_back()`)
	require.NoError(t, err)
	all := request(t, s.Pool, tasks, nil)
	require.Eventually(t, func() bool {
		return count(t, s.Pool, `select count(*) from pawl.tasks where state = 'evaluating_results'`) == tasks
	}, patience, 20*time.Millisecond)
	s.Of(Orchestrator)[0].Kill()
	_, err = s.Pool.Exec(t.Context(), `drop trigger hold_back on pgmq.q_orchestration_task_finalizations`)
	require.NoError(t, err)
	_, err = s.Pool.Exec(t.Context(), `select pgmq.send('orchestration_task_finalizations', f.message)
		from pgmq.q_orchestration_task_finalizations f, generate_series(1, $1)`, 2*finalizers)
	require.NoError(t, err)
	_, err = s.Pool.Exec(t.Context(), `select pgmq.set_vt('orchestration_task_finalizations', msg_id, 0) from pgmq.q_orchestration_task_finalizations where vt = 'infinity'`)
	require.NoError(t, err)

	lock, err := s.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer lock.Rollback(context.Background())
	_, err = lock.Exec(t.Context(), `select from pawl.tasks where task_id = any ($1) for update`, all)
	require.NoError(t, err)
	for i := range finalizers {
		_, err := s.AddOrchestrator(fmt.Sprint("finalizer-", i+1), "PAWL_CONNECTIONS=2", "PAWL_BATCH=4", "PAWL_VISIBILITY_TIMEOUT=60s")
		require.NoError(t, err)
	}
	waiting := 0
	require.Eventually(t, func() bool { // their waiting ends after 5 s each, and begins again: rarely all wait at one moment
		waiting = max(waiting, count(t, s.Pool, `select count(*) from pg_stat_activity where datname = current_database()
			and wait_event_type = 'Lock' and query like '%finalize_tasks%'`))
		return waiting >= finalizers/2
	}, patience, 5*time.Millisecond)
	require.NoError(t, lock.Commit(t.Context()))
	awaitComplete(t, s, all)
	rest(t, s, nil, nil)
	require.Equal(t, tasks, count(t, s.Pool, `select count(*) from pawl.audit where step is null and to_state = 'complete'`))
	errors, err := s.LogLines(`"level":"ERROR"`, 3)
	require.NoError(t, err)
	require.Empty(t, errors)
	t.Logf("%d of %d finalizers waited for the same tasks at one moment", waiting, finalizers)
}

func TestPoolsOfTwoConnectionsCarryTheLoad(t *testing.T) {
	t.Parallel()
	s := set(t, Config{Orchestrators: 2, Workers: 1, Environment: []string{"PAWL_BATCH=20"}})
	small, err := s.AddOrchestrator("small", "PAWL_CONNECTIONS=2")
	require.NoError(t, err)
	for _, m := range s.Of(Orchestrator) {
		if m != small {
			m.Kill()
		}
	}
	_, err = s.Add(Worker, "small-worker", s.Config.DatabaseURL+"&pool_max_conns=2", program{command: []string{programs.LedgerWorker}})
	require.NoError(t, err)
	all := request(t, s.Pool, 300, nil)
	awaitComplete(t, s, all)
	rest(t, s, nil, nil)
}

func TestAWorkerBehindPgBouncer(t *testing.T) {
	t.Parallel()
	program := FindBouncer()
	if program == "" {
		t.Skip("PgBouncer is not installed (apt-get install pgbouncer): nothing was tried behind it")
	}
	s := set(t, Config{Orchestrators: 1, Workers: 1, PgBouncer: program})
	all := request(t, s.Pool, 50, nil)
	awaitComplete(t, s, all)
	rest(t, s, nil, nil)
	text, err := os.ReadFile(s.Bouncer.LogFile)
	require.NoError(t, err)
	require.NotContains(t, strings.ToLower(string(text)), "already exists")
}
