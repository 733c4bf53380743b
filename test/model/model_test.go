package model

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/internal/doctor"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/test/kit"
)

// stepsOfRun is how many operations a run has, those for which there is nothing to do included.
const stepsOfRun = 50

// TestTheEngineIsItsModel runs about 3,000 operations, or PAWL_TEST_OPERATIONS. PAWL_TEST_SEED repeats a run; rapid keeps what
// failed in testdata, after shrinking it for 30 s or PAWL_TEST_SHRINK.
func TestTheEngineIsItsModel(t *testing.T) { live(t, false, operations()) }

// TestTheEngineIsItsModelOfKeysAndGates is the same with steps that have keys, a limit and a pause of their queue, and retention.
func TestTheEngineIsItsModelOfKeysAndGates(t *testing.T) { live(t, true, specialOperations()) }

func live(t *testing.T, special bool, all []operation) {
	count := 3000
	if given, err := strconv.Atoi(os.Getenv("PAWL_TEST_OPERATIONS")); err == nil {
		count = given
	}
	seed := strconv.FormatInt(time.Now().UnixNano(), 10)
	if given := os.Getenv("PAWL_TEST_SEED"); given != "" {
		seed = given
	}
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(max(1, count/stepsOfRun)), "rapid.seed": seed, "rapid.shrinktime": cmp.Or(os.Getenv("PAWL_TEST_SHRINK"), "30s")} {
		require.NoError(t, flag.Set(name, value))
	}
	t.Logf("PAWL_TEST_SEED=%s", seed)

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	k := &kit.Kit{TB: t, DB: conn}
	k.Template("m/queue", nil, kit.Step("a")) // makes the queue once
	k.Exec(`create or replace function pawl.now() returns timestamptz language sql volatile as
		$$ select current_setting('pawl_test.now')::timestamptz $$`)
	done := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		tx, err := conn.Begin(rt.Context())
		require.NoError(rt, err)
		defer tx.Rollback(t.Context())
		b := newBoth(rt, tx, special)
		b.done = done
		for range stepsOfRun {
			b.happen(all[rapid.IntRange(0, len(all)-1).Draw(rt, "operation")])
		}
		b.examine()
	})
	total := 0
	for _, n := range done {
		total += n
	}
	t.Logf("%d operations: %v", total, done)
	for _, o := range all {
		if total >= 2000 {
			require.Positive(t, done[o.name], "the runs never came to: %s", o.name)
		}
	}
}

// both are the engine and its model.
type both struct {
	*kit.Kit
	rt    *rapid.T
	tx    pgx.Tx
	model *World
	tasks []string   // ids of the model's tasks
	held  []delivery // claimed, ever: late reports are part of life
	fresh []delivery // claimed and not reported
	done  map[string]int
	keyed bool // steps may have keys, tasks have none
	gated bool // the queue may have a limit
}

// delivery is what a worker remembers.
type delivery struct {
	id   int64
	read int
}

// epoch of the virtual clock.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newBoth(rt *rapid.T, tx pgx.Tx, special bool) *both {
	b := &both{Kit: &kit.Kit{TB: rt, DB: tx}, rt: rt, tx: tx, model: New(), keyed: special}
	b.setClock()
	way := rapid.SampledFrom([]string{"direct = true, staged = false", "direct = false, staged = false", "staged = true"}).Draw(rt, "way")
	b.Exec("update pawl.engine_settings set " + way)
	b.model.Staged = way == "staged = true"
	b.gated = special && rapid.Bool().Draw(rt, "gated")
	for i := range rapid.IntRange(1, 3).Draw(rt, "templates") {
		b.addTemplate(fmt.Sprint("t", i))
	}
	return b
}

func (b *both) setClock() {
	b.Exec("select set_config('pawl_test.now', $1, false)", epoch.Add(b.model.Now).Format(time.RFC3339Nano))
}

// addTemplate draws a DAG and its policies.
func (b *both) addTemplate(name string) {
	seconds := func(label string) time.Duration {
		return time.Duration(rapid.SampledFrom([]int{0, 0, 0, 5, 60}).Draw(b.rt, label)) * time.Second
	}
	t := &Template{Name: name, OnFailure: rapid.SampledFrom([]string{"finish", "finish", "fail_fast", "hold"}).Draw(b.rt, "on_failure"),
		Timeout: 10 * seconds("task timeout")}
	var steps []kit.Object
	for i := range rapid.IntRange(1, 6).Draw(b.rt, "steps") {
		s := StepTemplate{Name: fmt.Sprint("s", i), MaxAttempts: rapid.IntRange(1, 3).Draw(b.rt, "max_attempts"),
			Backoff: rapid.SampledFrom([]string{"none", "fixed", "linear", "exponential"}).Draw(b.rt, "backoff"),
			Base:    4 * time.Second, MaxDeliveries: rapid.SampledFrom([]int{1, 2, 10}).Draw(b.rt, "max_deliveries"), Timeout: seconds("step timeout")}
		line := s.Name + ":"
		for need := range i {
			if rapid.IntRange(0, 2).Draw(b.rt, "edge") == 0 {
				s.Needs = append(s.Needs, need)
				line += fmt.Sprint(" s", need)
			}
		}
		t.Steps = append(t.Steps, s)
		fields := kit.Object{"max_deliveries": s.MaxDeliveries, "retry": kit.Object{"max_attempts": s.MaxAttempts, "backoff": s.Backoff,
			"base_ms": s.Base.Milliseconds(), "jitter": 0}}
		if s.Timeout > 0 {
			fields["timeout_ms"] = s.Timeout.Milliseconds()
		}
		if b.keyed {
			b.addKey(&t.Steps[i], fields)
		}
		step := kit.Step(line, fields)
		step["name"] = s.Name
		steps = append(steps, step)
	}
	definition := kit.Object{"on_failure": t.OnFailure, "result": "s0"}
	if t.Timeout > 0 {
		definition["timeout_ms"] = t.Timeout.Milliseconds()
	}
	if b.keyed {
		b.addWindows(t, definition)
	}
	b.Template("m/"+name, definition, steps...)
	b.model.Templates = append(b.model.Templates, t)
}

// examine asks the doctor, as far as a virtual clock lets it.
func (b *both) examine() {
	report, err := doctor.ExamineIn(b.Context(), b.tx, doctor.Config{})
	require.NoError(b, err)
	require.True(b, report.Healthy(), "%+v", report.Violations)
}
