package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Where jit is on, as it is by default, Postgres compiles each statement whose plan looks dear, for half a second, at every
// call: one that must use a sequential scan although it is off (ten thousand million), or one over tables whose
// size is not known yet. So whatever is called from outside switches it off, and with it all that it calls.
func TestFunctionsAreNotCompiled(t *testing.T) {
	k := newKit(t)
	require.Equal(t, "on", get[string](k, "show jit"), "tests run with the server's default")
	const compiled = ` and not coalesce('jit=off' = any (p.proconfig), false) order by 1`
	const scanless = `from pg_proc p where p.pronamespace in ('pawl'::regnamespace, 'pawl_queues'::regnamespace)
		and 'enable_seqscan=off' = any (p.proconfig)`
	require.Greater(t, get[int](k, "select count(*)::int "+scanless+" and p.pronamespace = 'pawl_queues'::regnamespace"), 3)
	require.Empty(t, list[string](k, "select p.proname "+scanless+compiled))
	const entries = `from pg_proc p join pg_language l on l.oid = p.prolang
		where p.pronamespace = 'pawl'::regnamespace and l.lanname = 'plpgsql' and p.prorettype <> 'trigger'::regtype
		and (p.proname in (select r.name from pawl.role_functions() r)
			or not exists (select from pg_proc c where c.pronamespace = 'pawl'::regnamespace and c.oid <> p.oid
				and c.prosrc ~ ('pawl\.' || p.proname || '\(')))`
	require.Greater(t, get[int](k, "select count(*)::int "+entries), 30)
	require.Empty(t, list[string](k, "select p.proname "+entries+compiled))
}
