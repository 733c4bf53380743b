package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An error is stored as it was reported, whichever way it took.
func TestAnErrorKeepsItsNullsOnEveryWay(t *testing.T) {
	for _, way := range []string{"direct = true, staged = false", "direct = false, staged = false", "direct = true, staged = true"} {
		t.Run(way, func(t *testing.T) {
			k := newKit(t)
			setting(k, way)
			k.Template("shop/one", nil, step("a"))
			task := k.Submit("shop/one")
			k.Rest()
			reported := object{"type": "net", "retryable": false, "details": object{"code": nil, "tries": []any{nil, 1.0}}, "cause": nil}
			require.True(t, k.Report(queue, k.ClaimOne(queue), object{"status": "failed", "error": reported}))
			k.Rest()
			require.Equal(t, reported, k.object("select error from pawl.steps where task_id = $1", task))
		})
	}
}
