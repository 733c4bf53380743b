package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOneRowsTriggerDoesNotStopItsJanitor(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	stubborn, other := k.pay("A-1", "admin"), k.pay("A-2", "admin")
	require.Len(t, k.Claim("work_queue"), 2)
	k.Exec(`create function refuse() returns trigger language plpgsql as
		'begin raise exception ''% stays'', new.number using errcode = ''23514''; end'`)
	k.Exec("create trigger refuse before update on invoices for each row when (new.number = 'A-1') execute function refuse()")
	k.Later(6 * time.Minute)
	round := k.janitor()
	require.EqualValues(t, 1, round["reverted"], "%v", round)
	require.EqualValues(t, 1, round["left"], "%v", round)
	require.Equal(t, object{"entity": "invoice", "entity_id": "A-1", "sqlstate": "23514", "message": "A-1 stays"}, round["raised"])
	require.Equal(t, []string{"paying 2", "sent 9"}, []string{k.invoice("A-1"), k.invoice("A-2")})
	require.Equal(t, []string{"in_progress", "waiting"}, []string{k.steps(stubborn)["pay"], k.steps(other)["pay"]})

	k.Exec("drop trigger refuse on invoices")
	round = k.janitor()
	require.EqualValues(t, 1, round["reverted"], "%v", round)
	require.Nil(t, round["raised"])
	require.Equal(t, "sent 3", k.invoice("A-1"))
	k.sound()
}

func TestAJanitorEndsWhenTheDatabaseSaysThatItMust(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	k.ClaimOne("work_queue")
	k.Exec("create function refuse() returns trigger language plpgsql as 'begin raise exception ''no room'' using errcode = ''53100''; end'")
	k.Exec("create trigger refuse before update on invoices for each row execute function refuse()")
	k.Later(6 * time.Minute)
	k.refused("53100", "select pawl.revert_stale_claims('billing', 'janitor')")
}

func TestAJanitorsRoundIsBounded(t *testing.T) {
	const bound = 500
	k := newKit(t)
	invoices(k, nil)
	k.Exec("insert into invoices select 'B-' || n, 'paying', 2 from generate_series(1, $1) n", bound+1)
	k.Exec(`insert into pawl.entity_claims (entity, entity_id, task_id, step, index, attempt, version, revert_to, on_success, claimed_at, lease_until)
		select 'invoice', 'B-' || n, gen_random_uuid(), 'pay', 0, 1, 2, 'sent', 'paid', now() - interval '1 h', now() - interval '1 h'
		from generate_series(1, $1) n`, bound+1)
	require.EqualValues(t, bound, k.janitor()["reverted"])
	require.EqualValues(t, 1, k.janitor()["reverted"])
}

func TestAJanitorSignsAsNoOperator(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	k.ClaimOne("work_queue")
	k.Later(6 * time.Minute)
	k.Exec("select set_config('pawl.actor', 'ann', false), set_config('pawl.reason', 'she said so', false)")
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Equal(t, 1, get[int](k, "select count(*) from pawl.audit where to_state = 'waiting' and step = 'pay' and actor is null and reason is distinct from 'she said so'"))
}
