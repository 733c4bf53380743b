package sql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	engine "github.com/pawl-dev/pawl/test/kit"
)

// A look at the clock takes so many due rows at most. Tasks that somebody holds may have more: those behind them fire all
// the same.
func TestHeldTasksWithManyDueStepsDoNotStopTheClock(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("clock/wide", nil, step("a"), step("b"), step("c"), step("d"), step("e"), step("f"))
	k.Template("clock/one", nil, step("a"))
	var wide []uuid.UUID
	for range 3 {
		wide = append(wide, k.Submit("clock/wide"))
	}
	for _, d := range k.Claim(queue) {
		require.True(t, k.Report(queue, d, engine.Failed(true, time.Second)))
	}
	free := []uuid.UUID{k.Submit("clock/one"), k.Submit("clock/one")}
	for _, d := range k.Claim(queue) {
		require.True(t, k.Report(queue, d, engine.Failed(true, time.Minute)))
	}
	k.Later(time.Hour)

	holder := k.begin()
	holder.Exec("select from pawl.tasks where task_id = any ($1) for no key update", wide)
	tick := func() (int, bool) {
		rang := k.object("select pawl.fire_due(5, 'kit')")
		return int(rang["fired"].(float64)), rang["more"].(bool)
	}
	fired, more := tick()
	require.Equal(t, 2, fired)
	require.True(t, more)
	require.Equal(t, []string{"enqueued", "enqueued"}, []string{k.steps(free[0])["a"], k.steps(free[1])["a"]})
	fired, more = tick()
	require.Zero(t, fired)
	require.False(t, more, "what is held does not keep the clock ringing")
	holder.commit()
	for range 10 {
		if _, more = tick(); !more {
			break
		}
	}
	require.Len(t, k.Claim(queue), 20)
	k.sound()
}
