package sql_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// R1: others see the state, its messages, its audit and the removal of the cause in one moment, or nothing of it.
func TestStateMessagesAndTheirCauseCommitTogether(t *testing.T) {
	for _, o := range append(workOperations(), commandOperations()...) {
		t.Run(o.name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.shop()
			c := o.prepare(k)
			before := k.content()

			undone := k.begin()
			undone.Exec(c.sql, c.args...)
			require.Equal(t, before, k.content(), "not committed: nobody sees anything")
			require.NoError(t, undone.DB.(pgx.Tx).Rollback(t.Context()))
			require.Equal(t, before, k.content(), "rolled back: nothing has happened")

			done := k.begin()
			xid := get[string](done, "select pg_current_xact_id()::text")
			audited := get[int](k, "select count(*)::int from pawl.audit")
			done.Exec(c.sql, c.args...)
			seen := done.content()
			require.NotEqual(t, before, seen)
			done.commit()
			require.Equal(t, seen, k.content(), "committed: everybody sees all of it")
			require.Equal(t, get[int](k, "select count(*)::int from pawl.audit")-audited,
				get[int](k, "select count(*)::int from pawl.audit where xid::text = $1", xid), "the audit names the transaction")
		})
	}
}

// failing makes every statement that writes to the engine's tables or queues count, and the chosen one raise.
func (k *kit) failing() {
	k.Helper()
	k.Exec("create sequence written")
	k.Exec(`create function fail_at() returns trigger language plpgsql security definer as $$
		begin
			if nextval('public.written') = current_setting('failing.at')::bigint then
				raise exception 'seeded in %', tg_table_name using errcode = current_setting('failing.code');
			end if;
			return null;
		end $$`)
	for _, table := range list[string](k, `select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and (n.nspname = 'pawl' or n.nspname = 'pgmq' and c.relname like 'q\_%')`) {
		k.Exec("create trigger zz_fail after insert or update or delete on " + table + " for each statement execute function fail_at()")
	}
	k.fails(0, "57014")
}

// fails sets which writing statement raises what from now on; 0 is none.
func (k *kit) fails(at int, code string) {
	k.Helper()
	k.Exec("select setval('public.written', 1, false), set_config('failing.at', $1, false), set_config('failing.code', $2, false)",
		fmt.Sprint(at), code)
}

// attempt runs a call in a sub-transaction, which is kept if it succeeds.
func (k *kit) attempt(c call) error {
	k.Helper()
	tx, err := k.DB.Begin(k.Context())
	require.NoError(k, err)
	if _, err := tx.Exec(k.Context(), c.sql, c.args...); err != nil {
		require.NoError(k, tx.Rollback(k.Context()))
		return err
	}
	return tx.Commit(k.Context())
}

// The transaction layer by itself: guards and CHECKs off, every single writing statement of every operation fails once, and
// nothing of the operation remains; then it is done as if nothing had been.
func TestAFailingStatementInTheMiddleLeavesNothing(t *testing.T) {
	for _, o := range append(workOperations(), commandOperations()...) {
		t.Run(o.name, func(t *testing.T) {
			k := newKit(t)
			k.bypassGuards()
			k.bypassChecks()
			k.shop()
			c := o.prepare(k)
			k.failing()
			before := k.content()
			at := 1
			for ; ; at++ {
				require.Less(t, at, 200)
				k.fails(at, "57014")
				err := k.attempt(c)
				if err == nil {
					break
				}
				require.True(t, isCode(err, "57014"), "statement %d: %v", at, err)
				require.Equal(t, before, k.content(), "statement %d", at)
			}
			require.Greater(t, at, 1, "it writes something")
			require.NotEqual(t, before, k.content())
		})
	}
}

// Claim and report catch what one bad message raises. Whatever statement fails there, they did all or nothing: the task
// comes to its end, and every transition is in the audit.
func TestAnErrorThatIsCaughtLeavesNoHalf(t *testing.T) {
	for _, o := range workOperations() {
		switch o.name {
		case "claim", "report", "report the last step", "report a failure", "report and claim":
		default:
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			k := newKit(t)
			k.shop()
			c := o.prepare(k)
			k.failing()
			for at := 1; ; at++ {
				require.Less(t, at, 200)
				again, err := k.DB.Begin(t.Context())
				require.NoError(t, err)
				k.fails(at, "53200")
				_ = k.attempt(c)
				passed := get[int](k, "select last_value::int from written")
				k.fails(0, "53200")
				k.finish()
				require.NoError(t, again.Rollback(t.Context()))
				if passed < at {
					return
				}
			}
		})
	}
}

// finish works all that is open to its end, leases and back-offs being over, and looks at it.
func (k *kit) finish() {
	k.Helper()
	for range 20 {
		k.Expire(queue)
		k.Rest()
		k.Finish(queue, k.Claim(queue)...)
		k.Tick()
		if get[bool](k, "select not exists (select from pawl.tasks where finalized_at is null)") {
			require.Empty(k, list[string](k, "select state::text from pawl.tasks where state <> 'complete'"))
			k.sound()
			return
		}
	}
	require.FailNow(k, "the task does not end")
}
