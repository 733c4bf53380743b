package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/kit"
)

// pair is two operations of one situation.
type pair struct {
	situation     Situation
	first, second string
}

func (p pair) String() string {
	return fmt.Sprintf("%s: %s / %s", p.situation.Name, p.first, p.second)
}

// schedule switches twice: the first operation runs to its ith point, the second to its jth (0: to its end), the first to
// its end, the second to its end. Who waits for the other's lock lets the other go on.
type schedule struct{ i, j int }

// duel runs pairs of operations in two sessions.
type duel struct {
	*lab
	sessions [2]*session
	control  *pgx.Conn // holds the locks at which the sessions pause
}

func newDuel(t *testing.T) *duel {
	t.Helper()
	d := &duel{lab: newLab(t)}
	for i := range d.sessions {
		d.sessions[i] = d.open(t, i+1, "", "")
	}
	d.control = d.open(t, 1, "", "").Conn
	t.Cleanup(func() {
		for _, s := range append(d.sessions[:], &session{Conn: d.control}) {
			_ = s.Conn.Close(context.Background())
		}
	})
	return d
}

func pairTemplate(k *kit.Kit) {
	k.Helper()
	k.Template("t/pair", nil, kit.Step("a"), kit.Step("b: a", object{"timeout_ms": 60_000, "retry": object{"backoff": "none"}}),
		kit.Step("c: a"), kit.Step("d: b c"))
}

// points that an operation passes alone.
func (d *duel) points(t *testing.T, s Situation, name string) int {
	t.Helper()
	op := s.Setup(d.clean(t))[name]
	r := d.sessions[0]
	r.points = nil
	r.set(t, 1, "record", "")
	_, err := r.Exec(t.Context(), op.SQL, op.Args...)
	require.True(t, err == nil || refused(err), "%s: %v", name, err)
	return len(r.points)
}

// serial gives the outcomes that a pair may have: one after the other in both orders, and without what may skip.
func (d *duel) serial(t *testing.T, p pair) []string {
	t.Helper()
	var allowed []string
	ops := p.situation.Setup(d.clean(t))
	orders := [][]string{{p.first, p.second}, {p.second, p.first}}
	if ops[p.first].Skips {
		orders = append(orders, []string{p.second})
	}
	if ops[p.second].Skips {
		orders = append(orders, []string{p.first})
	}
	for _, order := range orders {
		allowed = append(allowed, d.inOrder(t, p, order, false))
		if ops[p.first].Partly+ops[p.second].Partly != "" {
			allowed = append(allowed, d.inOrder(t, p, order, true))
		}
	}
	return allowed
}

// inOrder gives the outcome of operations one after the other; partly hides what they may pass over.
func (d *duel) inOrder(t *testing.T, p pair, order []string, partly bool) string {
	t.Helper()
	k := d.clean(t)
	ops := p.situation.Setup(k)
	for _, name := range order {
		if partly && ops[name].Partly != "" {
			k.Exec(ops[name].Partly)
		}
		_, err := d.pool.Exec(t.Context(), ops[name].SQL, ops[name].Args...)
		require.True(t, err == nil || refused(err), "%s: %v", name, err)
	}
	calm(k)
	return counted(k)
}

// where a session stands.
type where int

const (
	ended where = iota
	paused
	blocked
)

// run carries an operation out in the background.
func (d *duel) run(t *testing.T, number, at int, op Operation) <-chan error {
	t.Helper()
	s := d.sessions[number]
	s.set(t, number+1, "pause", strconv.Itoa(at))
	done := make(chan error, 1)
	go func() {
		_, err := s.Exec(t.Context(), op.SQL, op.Args...)
		done <- err
	}()
	return done
}

// wait returns when a session has ended, stands at its point, or waits for the other.
func (d *duel) wait(t *testing.T, number int, done <-chan error, errs *[2]error) where {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	own, other, control := d.sessions[number].PgConn().PID(), d.sessions[1-number].PgConn().PID(), d.control.PgConn().PID()
	for time.Now().Before(deadline) {
		select {
		case errs[number] = <-done:
			return ended
		case <-time.After(500 * time.Microsecond):
		}
		var pids []uint32
		require.NoError(t, d.control.QueryRow(t.Context(), "select pg_blocking_pids($1)", own).Scan(&pids))
		switch {
		case slices.Contains(pids, control):
			return paused
		case slices.Contains(pids, other):
			return blocked
		}
	}
	require.FailNow(t, "a session neither ends nor waits")
	return ended
}

func (d *duel) locks(t *testing.T, what string, number int) {
	t.Helper()
	_, err := d.control.Exec(t.Context(), fmt.Sprintf("select pg_advisory_%s(4242, %d)", what, number+1))
	require.NoError(t, err)
}

// meet carries a pair out under one schedule.
func (d *duel) meet(t *testing.T, p pair, sch schedule, allowed []string) {
	t.Helper()
	what := fmt.Sprintf("%s, the first stops at %d, the second at %d", p, sch.i, sch.j)
	k := d.clean(t)
	ops := p.situation.Setup(k)
	watch(k)
	d.locks(t, "lock", 0)
	d.locks(t, "lock", 1)
	var errs [2]error
	first := d.run(t, 0, sch.i, ops[p.first])
	at := [2]where{d.wait(t, 0, first, &errs)}
	second := d.run(t, 1, sch.j, ops[p.second])
	at[1] = d.wait(t, 1, second, &errs)
	d.locks(t, "unlock", 0)
	if at[0] != ended {
		at[0] = d.wait(t, 0, first, &errs)
	}
	d.locks(t, "unlock", 1)
	for n, done := range []<-chan error{first, second} {
		if at[n] == ended {
			continue
		}
		select {
		case errs[n] = <-done:
		case <-time.After(time.Minute):
			require.FailNow(t, "it does not end", what)
		}
	}
	for _, err := range errs {
		require.True(t, err == nil || refused(err) || code(err) == "55P03", "%s: %v", what, err)
	}
	calm(k)
	require.Contains(t, allowed, counted(k), what)
	heal(k)
	d.healthy(t, what)
	accounted(t, k, what)
}

// schedules of a pair whose operations pass m and n points: some, half of which let the second operation run through while
// the first stands; all of these when asked to be exhaustive; and all with two switches when PAWL_TEST_EXHAUSTIVE is 2.
func schedules(r *rand.Rand, m, n int) []schedule {
	var chosen []schedule
	if exhaustive() || only() != "" {
		for i := range m {
			chosen = append(chosen, schedule{i + 1, 0})
			for j := range n {
				if os.Getenv("PAWL_TEST_EXHAUSTIVE") == "2" {
					chosen = append(chosen, schedule{i + 1, j + 1})
				}
			}
		}
		return chosen
	}
	for range 2 {
		chosen = append(chosen, schedule{1 + r.IntN(m), 0}, schedule{1 + r.IntN(m), 1 + r.IntN(n)})
	}
	return chosen
}

func TestEveryInterleaving(t *testing.T) {
	t.Parallel()
	d := newDuel(t)
	var pairs []pair
	lengths := map[string]int{} // points of situation/operation
	one, two, met := 0, 0, 0
	for _, s := range situations() {
		names := s.names(d.clean(t))
		for _, first := range names {
			lengths[s.Name+first] = d.points(t, s, first)
			for _, second := range names {
				pairs = append(pairs, pair{s, first, second})
			}
		}
	}
	for _, p := range pairs {
		m, n := lengths[p.situation.Name+p.first], lengths[p.situation.Name+p.second]
		one, two = one+m, two+m*n
	}
	chosen := sample(t, pairs, 30)
	r := seeded(t)
	for _, p := range chosen {
		allowed := d.serial(t, p)
		for _, sch := range schedules(r, lengths[p.situation.Name+p.first], lengths[p.situation.Name+p.second]) {
			d.meet(t, p, sch, allowed)
			met++
		}
	}
	t.Logf("%d pairs of operations, %d schedules with one switch, %d with two; met: %d pairs, %d schedules; deadlocks 0",
		len(pairs), one, two, len(chosen), met)
}
