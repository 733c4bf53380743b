package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A step is cancelled as soon as one of its needs is out of reach, and names the first by name of those that are by then.
func TestACancelledStepNamesWhatItNeeds(t *testing.T) {
	k := newKit(t)
	k.Template("reach/mixed", nil, step("m"), step("z"), step("k: m?"), step("b: m"), step("c: b z"), step("a: c"), step("d: a m"),
		step("e: a c"), step("free"))
	task := k.Submit("reach/mixed")
	for _, d := range k.Claim("work_queue") {
		if d.Step == "m" {
			k.fail("work_queue", d)
		}
	}
	k.Rest()
	require.Equal(t, []string{
		"a: needs c, which is cancelled",
		"b: needs m, which is error",
		"c: needs b, which is cancelled",
		"d: needs m, which is error",
		"e: needs c, which is cancelled",
		"k: needs m, which is error",
	}, list[string](k, "select step || ': ' || (error->>'message') from pawl.steps where task_id = $1 and state = 'cancelled' order by 1", task))
	require.Equal(t, map[string]string{"m": "error", "z": "in_progress", "free": "in_progress", "k": "cancelled", "b": "cancelled",
		"c": "cancelled", "a": "cancelled", "d": "cancelled", "e": "cancelled"}, k.steps(task))
	k.sound()
}
