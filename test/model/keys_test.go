package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/test/kit"
)

// specialOperations are all, and what besides concerns keys and gates.
func specialOperations() []operation {
	return slices.Insert(operations(), 6, operation{"report all", (*both).reportAll}, operation{"a minute passes", (*both).passMinute},
		operation{"sweep", (*both).sweep}, operation{"limit", (*both).limit}, operation{"pause or resume", (*both).pauseOrResume})
}

// addKey draws the key of a step: of all with the same text one runs at a time.
func (b *both) addKey(s *StepTemplate, fields kit.Object) {
	s.Key = rapid.SampledFrom([]string{"%s", "", "one", "%s"}).Draw(b.rt, "step key")
	if s.Key != "" {
		fields["key"], fields["handler"] = strings.ReplaceAll(s.Key, "%s", "${input.k}"), "do.keyed"
	}
}

// addWindows draws how long keys and tasks are kept.
func (b *both) addWindows(t *Template, definition kit.Object) {
	t.Retention, t.Window = 30*day, 30*day
	if len(t.Steps) == 1 {
		t.Retention, t.Window = 7*day, 7*day
	}
	if rapid.IntRange(0, 2).Draw(b.rt, "brief") == 0 {
		t.Retention, t.Window = 0, 0
		definition["retention_ms"] = 0
	}
	if seconds := rapid.SampledFrom([]int{-1, 0, 10}).Draw(b.rt, "window"); seconds >= 0 {
		t.Window = time.Duration(seconds) * time.Second
		definition["identity"] = kit.Object{"dedup_window_ms": t.Window.Milliseconds()}
	}
}

// rest lets the engine come to rest, and the model with it. Nothing may be left to the reconciler then.
func (b *both) rest() {
	b.Rest()
	if b.keyed {
		b.open()
	}
	b.model.Turn(b.holds, b.begun)
	if b.keyed {
		require.Empty(b, kit.List[string](b.Kit, "select kind || ' ' || found from pawl.task_defects(array(select task_id from pawl.tasks))"))
		require.Zero(b, kit.Get[int](b.Kit, "select pawl.reconcile_step_keys()"))
	}
}

// holds tells whether a step has its key and runs.
func (b *both) holds(task, step int) bool {
	return kit.Get[bool](b.Kit, "select exists (select from pawl.step_identities where task_id = $1 and step = $2 and status = 'running' and expires_at is null)",
		b.tasks[task], fmt.Sprint("s", step))
}

// reportAll reports what was claimed and not yet reported in one call.
func (b *both) reportAll() {
	if len(b.fresh) == 0 {
		panic(impossibleNow{})
	}
	var reports []kit.Object
	var results []Result
	var want []bool
	for _, d := range b.fresh {
		r, end := b.result()
		end["msg_id"], end["read_ct"] = d.id, d.read
		reports = append(reports, end)
		counted, accepted := b.model.handIn(d.id, d.read, r)
		results, want = append(results, counted...), append(want, accepted)
	}
	b.fresh = nil
	answers := kit.Get[[]kit.Object](b.Kit, "select pawl.report_steps('work_queue', $1, 'worker-1')", reports)
	for i, answer := range answers {
		require.Equal(b, want[i], answer["accepted"], "%v", reports[i])
	}
	b.model.Apply(results...)
}

func (b *both) passMinute() {
	b.model.Now += time.Minute + time.Second
	b.setClock()
	b.Tick()
	b.model.Fire()
}

func (b *both) sweep() {
	b.Exec(`select pawl.sweep(100, 'kit', '{"old": null}')`)
	b.model.Sweep()
}
