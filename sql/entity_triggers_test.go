package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// accounts puts invoices, and many more of them, behind one row each of another table, which a trigger writes.
func accounts(k *kit, more int) {
	k.Helper()
	invoices(k, nil)
	k.Exec("create table accounts (id text primary key, changes int not null default 0)")
	k.Exec("insert into accounts values ('busy'), ('free')")
	k.Exec("alter table invoices add account text not null default 'busy' references accounts")
	k.Exec("update invoices set account = 'free' where number = 'A-2'")
	k.Exec("insert into invoices select 'B-' || n, 'sent', 1 from generate_series(1, $1) n", more)
	k.Exec(`create function count_change() returns trigger language plpgsql as
		'begin update public.accounts set changes = changes + 1 where id = new.account; return null; end'`)
	k.Exec("create trigger count_change after update on invoices for each row execute function count_change()")
}

// withTimeouts is a session of a role that has them.
func (k *kit) withTimeouts() *kit {
	k.Helper()
	session := k.begin()
	session.Exec("set local lock_timeout = '5s'")
	session.Exec("set local statement_timeout = '9s'")
	return session
}

func TestALockBehindATriggerDelaysItsStepsAlone(t *testing.T) {
	const more = 98 // a tenth of a second each would be more than a statement has
	k := newCommittingKit(t)
	accounts(k, more)
	k.Template("shop/one", nil, step("a"))
	stranger := k.begin()
	stranger.Exec("select from accounts where id = 'busy' for update")
	for n := range more {
		k.pay(fmt.Sprintf("B-%d", n+1), "admin")
	}
	other, free := k.Submit("shop/one"), k.pay("A-2", "admin")
	k.Rest()
	worker := k.withTimeouts()
	claimed := worker.Claim("work_queue")
	worker.commit()
	var begun []uuid.UUID
	for _, d := range claimed {
		begun = append(begun, d.Task)
	}
	require.ElementsMatch(t, []uuid.UUID{other, free}, begun)
	require.Equal(t, more, get[int](k, "select count(*)::int from invoices where number like 'B-%' and status = 'sent'"))
	require.Equal(t, more, get[int](k, "select count(*)::int from pgmq.q_work_queue where read_ct = 0"), "waiting is not counted as crashing")

	stranger.commit()
	k.Expire("work_queue")
	k.Claim("work_queue")
	require.Equal(t, more, get[int](k, "select count(*)::int from invoices where number like 'B-%' and status = 'paying'"))
}

func TestALockBehindATriggerDelaysTheEndOfItsClaimAlone(t *testing.T) {
	t.Run("report", func(t *testing.T) {
		k := newCommittingKit(t)
		accounts(k, 0)
		task, other := k.pay("A-1", "admin"), k.pay("A-2", "admin")
		claimed := k.Claim("work_queue")
		require.Len(t, claimed, 2)
		stranger := k.begin()
		stranger.Exec("select from accounts where id = 'busy' for update")
		worker := k.withTimeouts()
		worker.Finish("work_queue", claimed...)
		worker.commit()
		require.Equal(t, []string{"paying 2", "paid 9"}, []string{k.invoice("A-1"), k.invoice("A-2")})
		require.Equal(t, []string{"in_progress", "complete"}, []string{k.steps(task)["pay"], k.steps(other)["pay"]})
		k.Later(time.Hour)
		stranger.commit()
		require.EqualValues(t, 0, k.janitor()["reverted"], "the result is on its way")
		k.Rest()
		require.Equal(t, "paid 3", k.invoice("A-1"))
		require.Equal(t, "complete", k.steps(task)["pay"])
	})
	t.Run("janitor", func(t *testing.T) {
		k := newCommittingKit(t)
		accounts(k, 0)
		k.pay("A-1", "admin")
		k.pay("A-2", "admin")
		require.Len(t, k.Claim("work_queue"), 2)
		k.Later(time.Hour)
		stranger := k.begin()
		stranger.Exec("select from accounts where id = 'busy' for update")
		worker := k.withTimeouts()
		round := worker.janitor()
		worker.commit()
		require.Equal(t, object{"reverted": 1.0, "lost": 0.0, "left": 1.0, "raised": nil}, round)
		require.Equal(t, []string{"paying 2", "sent 9"}, []string{k.invoice("A-1"), k.invoice("A-2")})
		stranger.commit()
		require.EqualValues(t, 1, k.janitor()["reverted"])
	})
}
