package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiamondIsWorkedInOrder(t *testing.T) {
	k := newKit(t)
	k.Template("shop/diamond", nil, step("a"), step("b: a"), step("c: a"), step("d: b c"))
	task := k.Submit("shop/diamond", object{"input": object{"n": 1}})
	worked := k.work("work_queue")
	require.Equal(t, "a", worked[0])
	require.Equal(t, "d", worked[3])
	require.Equal(t, "complete", k.State(task))
	k.sound()
}

func TestAttemptsEndAsTheyShould(t *testing.T) {
	k := newKit(t)
	k.Template("shop/chain", nil, step("a"), step("b: a"))
	task := k.Submit("shop/chain")
	k.fail("work_queue", k.ClaimOne("work_queue"))
	require.Equal(t, "error", k.State(task))
	require.Equal(t, map[string]string{"a": "error", "b": "cancelled"}, k.steps(task))
	require.Equal(t, []string{"created", "evaluated", "failed", "a: enqueued", "a: started", "a: failed", "b: cancelled"}, k.events(task))
	k.sound()
}
