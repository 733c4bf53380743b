package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A plan that must use a sequential scan although it is off has a cost of ten thousand million: reason enough for Postgres,
// where jit is on as it is by default, to compile each statement for half a second, at every call.
func TestFunctionsWithoutSequentialScansAreNotCompiled(t *testing.T) {
	k := newKit(t)
	const scanless = `from pg_proc p where p.pronamespace in ('pawl'::regnamespace, 'pawl_queues'::regnamespace)
		and 'enable_seqscan=off' = any (p.proconfig)`
	require.Greater(t, get[int](k, "select count(*)::int "+scanless+" and p.pronamespace = 'pawl_queues'::regnamespace"), 3)
	require.Empty(t, list[string](k, "select p.proname "+scanless+" and not 'jit=off' = any (p.proconfig)"))
	require.Equal(t, "on", get[string](k, "show jit"), "tests run with the server's default")
}
