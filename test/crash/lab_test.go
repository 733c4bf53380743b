package crash

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/doctor"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/test/kit"
)

// schema of the points. A session's mode is a setting; its passages are counted in a sequence, which no rollback turns back.
const schema = `
create schema pawl_test;
create sequence pawl_test.passage_1;
create sequence pawl_test.passage_2;
create sequence pawl_test.version;
create function pawl_test.point(name text, place int) returns boolean language plpgsql as $$
declare
  mode text := current_setting('pawl_test.mode', true);
  me text := current_setting('pawl_test.me', true);
  passage bigint;
begin
  if coalesce(mode, '') = '' then
    return true;
  end if;
  passage := nextval('pawl_test.passage_' || me);
  if mode = 'record' then
    raise notice 'point % %', name, place;
  elsif mode = 'always' then
    if name || ' ' || place = current_setting('pawl_test.at') then
      raise exception 'seeded at %/%', name, place using errcode = '53200';
    end if;
  elsif passage = current_setting('pawl_test.at')::bigint then
    case mode
      when 'error' then raise exception 'seeded at %/%', name, place using errcode = '53200';
      when 'cancel' then raise exception 'seeded at %/%', name, place using errcode = '57014';
      when 'kill' then perform pg_terminate_backend(pg_backend_pid()), pg_sleep(60);
      when 'pause' then
        perform pg_advisory_lock_shared(4242, me::int);
        perform pg_advisory_unlock_shared(4242, me::int);
    end case;
  end if;
  return true;
end $$;`

// reset empties what tasks leave behind, and gives settings their defaults; templates and queues stay.
const reset = `
do $$
declare name text;
begin
  set local session_replication_role = replica;
  foreach name in array array['tasks', 'steps', 'held_steps', 'task_identities', 'step_identities', 'step_key_waiters', 'entity_claims',
    'audit', 'absorbed', 'dead_letters', 'operations', 'reconciler_notes', 'repairs', 'stuck_reports', 'template_settings'] loop
    execute format('delete from pawl.%I', name);
  end loop;
  for name in select m.queue_name from pgmq.meta m loop
    execute format('delete from pgmq.%I', 'q_' || name);
  end loop;
  update pawl.engine_settings set staged = false, direct = true, max_steps_per_transaction = 2000, absorbed_retention = '7 days';
  update pawl.queues set paused = false, rate_limit = null, rate_period = null, burst = null, max_concurrency = null, tokens = null,
    tokens_at = null, unclaimed_count = 0, retention = null;
  update pawl.templates set parked_reason = null;
  delete from pawl.entities where entity = 'bill';
  delete from pawl.processors;
  update pawl.reconciler set after_task = '00000000-0000-0000-0000-000000000000', pass = 1;
  update invoices set status = 'sent', version = 1;
  create or replace function pawl.now() returns timestamptz language sql volatile as 'select clock_timestamp()';
end $$`

// lab is an instrumented database.
type lab struct {
	pool *pgxpool.Pool
}

func newLab(t *testing.T) *lab {
	t.Helper()
	pool := pgtest.DB(t)
	built, err := Functions()
	require.NoError(t, err)
	batch := []string{schema}
	for _, f := range built {
		batch = append(batch, f.Text)
	}
	_, err = pool.Exec(t.Context(), strings.Join(batch, ";\n"))
	require.NoError(t, err)
	l := &lab{pool: pool}
	k := l.kit(t)
	templates(k)
	pairTemplate(k)
	k.Exec(moves)
	return l
}

// kit on the lab's ordinary sessions, which pass all points.
func (l *lab) kit(t *testing.T) *kit.Kit { return &kit.Kit{TB: t, DB: l.pool} }

// clean prepares the lab for the next case.
func (l *lab) clean(t *testing.T) *kit.Kit {
	t.Helper()
	k := l.kit(t)
	k.Exec(reset)
	return k
}

// session is a connection with a mode of its own.
type session struct {
	*pgx.Conn
	points []string // passed in mode record
}

// open connects a session that is number 1 or 2.
func (l *lab) open(t *testing.T, number int, mode, at string) *session {
	t.Helper()
	config := l.pool.Config().ConnConfig.Copy()
	s := &session{}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if name, ok := strings.CutPrefix(n.Message, "point "); ok {
			s.points = append(s.points, name)
		}
	}
	var err error
	s.Conn, err = pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	s.set(t, number, mode, at)
	return s
}

// set gives a session its mode and where it counts: a number of passages, counted anew, or the name of a point.
func (s *session) set(t *testing.T, number int, mode, at string) {
	t.Helper()
	me := strconv.Itoa(number)
	_, err := s.Conn.Exec(t.Context(), `select set_config('pawl_test.mode', $1, false), set_config('pawl_test.me', $2, false),
		set_config('pawl_test.at', $3, false), set_config('client_min_messages', 'notice', false),
		set_config('deadlock_timeout', '100ms', false), setval(('pawl_test.passage_' || $2)::regclass, 1, false)`, mode, me, at)
	require.NoError(t, err)
}

// close cuts the connection and returns when its backend, killed or not, has given back what it held.
func (l *lab) close(t *testing.T, s *session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pid := s.Conn.PgConn().PID()
	_ = s.Conn.Close(ctx)
	require.Eventually(t, func() bool {
		var there bool
		err := l.pool.QueryRow(ctx, "select exists (select from pg_stat_activity where pid = $1)", pid).Scan(&there)
		return err == nil && !there
	}, time.Minute, time.Millisecond, "the backend should end")
}

// Call is a statement that a client sends.
type Call struct {
	SQL  string
	Args []any
}

// healthy asks the doctor.
func (l *lab) healthy(t *testing.T, what string) {
	t.Helper()
	report, err := doctor.Examine(t.Context(), l.pool, doctor.Config{AtRest: true, Grace: -1})
	require.NoError(t, err)
	require.True(t, report.Healthy(), "%s: %+v", what, report.Violations)
}

// refused tells an operator's command that is not possible now; a transition that the guards refuse is none of these.
func refused(err error) bool {
	var raised *pgconn.PgError
	return errors.As(err, &raised) && strings.HasPrefix(raised.Code, "PW02")
}

func code(err error) string {
	var raised *pgconn.PgError
	if errors.As(err, &raised) {
		return raised.Code
	}
	return ""
}

func exhaustive() bool { return os.Getenv("PAWL_TEST_EXHAUSTIVE") != "" }

// only is a part of the names of the cases to run, all of them.
func only() string { return os.Getenv("PAWL_TEST_ONLY") }

// seeded gives the source of this run's sample and prints its seed.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("PAWL_TEST_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("PAWL_TEST_SEED=%d", seed)
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// sample takes n of all cases, or PAWL_TEST_CASES, or all when asked to.
func sample[T any](t *testing.T, all []T, n int) []T {
	t.Helper()
	r := seeded(t)
	if only := only(); only != "" {
		return slices.DeleteFunc(all, func(one T) bool { return !strings.Contains(fmt.Sprint(one), only) })
	}
	if given, err := strconv.Atoi(os.Getenv("PAWL_TEST_CASES")); err == nil {
		n = given
	}
	if exhaustive() || len(all) <= n {
		return all
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}
