package cluster

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/faults"
)

// phases of a task in which an orchestrator dies, each with the call that is its transaction, and the table whose lock
// stops it half-way.
var phases = []struct{ name, call, table string }{
	{"initialization", `pawl\.process_task_requests`, "pawl.steps"},
	{"enqueueing", `pawl\.process_step_enqueues`, "pawl.audit"},
	{"result processing", `pawl\.apply_step_results`, "pawl.audit"},
	{"finalization", `pawl\.finalize_tasks`, "pawl.audit"},
}

func TestAnOrchestratorKilledInAPhase(t *testing.T) {
	t.Parallel()
	for _, phase := range phases {
		t.Run(phase.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, Config{Orchestrators: 1, Workers: 1, Environment: []string{"PAWL_BATCH=20"}})
			// Every hop goes through its queue, so that each phase is a transaction of its own; and a task with more steps
			// than one transaction may enqueue needs the step-enqueuer.
			_, err := s.Pool.Exec(t.Context(), `update pawl.engine_settings set staged = true, max_steps_per_transaction = 3`)
			require.NoError(t, err)
			d := &dying{T: t, s: s, call: regexp.MustCompile(phase.call), victim: s.Of(Orchestrator)[0]}
			d.send()
			d.round("before the server has the call", func() { d.trapped(&faults.Trap{Request: true}) })
			d.round("before the server has the commit", func() { d.trappedCommit(&faults.Trap{Request: true}) })
			d.round("after the commit, without its reply", func() { d.trappedCommit(&faults.Trap{}) })
			d.round("inside the call", func() { d.stopped(phase.table) })
			awaitComplete(t, s, d.tasks)
			v := rest(t, s, nil, nil)
			require.Equal(t, len(d.tasks), v.Tasks)
		})
	}
}

// dying is a stage whose orchestrator dies again and again in the same phase.
type dying struct {
	*testing.T
	s      *Stage
	call   *regexp.Regexp
	victim *Member
	tasks  []uuid.UUID
}

func (d *dying) send() {
	d.Helper()
	d.tasks = append(d.tasks, request(d.T, d.s.Pool, 10, map[string]any{"template": Fan})...)
}

// round brings the victim into its phase, kills it there, and lets another one finish the work so far.
func (d *dying) round(where string, reach func()) {
	d.Helper()
	reach()
	require.True(d, d.victim.Kill(), where)
	d.victim.Proxy.Heal()
	d.Logf("killed %s", where)
	var err error
	d.victim, err = d.s.AddOrchestrator(fmt.Sprintf("orchestrator-%d", len(d.s.Members)), "PAWL_BATCH=20")
	require.NoError(d, err)
	d.send()
}

func (d *dying) await(hit <-chan struct{}, what string) {
	d.Helper()
	select {
	case <-hit:
	case <-time.After(patience):
		require.Fail(d, "the phase was not reached", what)
	}
}

// trapped catches the call.
func (d *dying) trapped(trap *faults.Trap) {
	d.Helper()
	trap.Match, trap.Hang = d.call, true
	d.await(d.victim.Proxy.Set(trap), "the call")
}

// trappedCommit catches the commit of a transaction that made the call: the call may be one by itself, or be in one.
func (d *dying) trappedCommit(trap *faults.Trap) {
	d.Helper()
	trap.Commits, trap.After, trap.Hang = true, d.call, true
	d.await(d.victim.Proxy.Set(trap), "the commit")
}

// stopped holds a lock on a table until the call waits for it; when the victim is dead the lock goes, and the server, which
// has not noticed the death, may even commit. An earlier phase may wait for the lock first: then it goes for a moment.
func (d *dying) stopped(table string) {
	d.Helper()
	for until := time.Now().Add(patience); !d.caught(table); d.send() {
		require.Less(d, time.Now(), until, "the call waits for the lock")
	}
}

func (d *dying) caught(table string) bool {
	d.Helper()
	conn, err := d.s.Pool.Acquire(d.Context())
	require.NoError(d, err)
	defer conn.Release()
	tx, err := conn.Begin(d.Context())
	require.NoError(d, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(d.Context(), "lock table "+table+" in share mode")
	require.NoError(d, err)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 250 {
		if count(d.T, d.s.Pool, `select count(*) from pg_stat_activity where datname = current_database()
			and wait_event_type = 'Lock' and query ~ $1`, d.call.String()) > 0 {
			d.victim.Kill()
			require.NoError(d, tx.Rollback(d.Context()))
			require.NoError(d, d.victim.Start()) // for round to kill
			return true
		}
		<-tick.C
	}
	return false
}
