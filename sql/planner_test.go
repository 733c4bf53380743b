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

// What a step passes on its way takes its callers' settings: to set them anew at every call is a hundredth of what a step costs that comes
// alone. So whoever calls one of these has all of them, or takes them from its own callers.
func TestTheWayOfAStepTakesItsCallersPlans(t *testing.T) {
	k := newKit(t)
	passed := []string{"begin_deliveries", "create_tasks", "hand_in_step_results", "plain_requests", "read_reports", "send_step_messages", "settle_step_results"}
	const all = `p.pronamespace = 'pawl'::regnamespace and p.proname = any ($1)`
	require.Len(t, list[string](k, "select p.proname from pg_proc p where "+all+" and 'enable_seqscan=off' = any (p.proconfig) is not true order by 1", passed), len(passed))
	require.Empty(t, list[string](k, "select p.proname from pg_proc p join pawl.role_functions() r on r.name = p.proname where "+all, passed))
	calls := list[string](k, `select c.proname || ' calls ' || p.proname from pg_proc p
		join pg_proc c on c.pronamespace = 'pawl'::regnamespace and c.oid <> p.oid and c.prosrc ~ ('pawl\.' || p.proname || '\(')
		where c.proname <> all ($1) and `+all+` order by 1`, passed)
	require.Greater(t, len(calls), 8)
	require.Empty(t, list[string](k, `select c.proname || ' calls ' || p.proname from pg_proc p
		join pg_proc c on c.pronamespace = 'pawl'::regnamespace and c.oid <> p.oid and c.prosrc ~ ('pawl\.' || p.proname || '\(')
		where c.proname <> all ($1) and `+all+`
			and ('{plan_cache_mode=force_generic_plan,enable_seqscan=off,jit=off}'::text[] <@ c.proconfig) is not true order by 1`, passed))
}
