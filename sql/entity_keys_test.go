package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// session is a transaction with settings of its own: one per worker, in whatever country.
func (k *kit) session(settings ...string) *kit {
	k.Helper()
	s := k.begin()
	for _, setting := range settings {
		s.Exec("set local " + setting)
	}
	return s
}

// What a key's text means is the same for who begins a claim, who reports it and who finds it stale.
func TestAKeyIsReadTheSameInEverySession(t *testing.T) {
	german := []string{"datestyle = 'German, DMY'", "timezone = 'Europe/Berlin'", "extra_float_digits = -15"}
	american := []string{"datestyle = 'SQL, MDY'", "timezone = 'America/New_York'", "intervalstyle = 'sql_standard'"}
	for kind, keys := range map[string][2]string{ // the second is what a session may take the first for
		"date":             {"2026-02-01", "2026-01-02"},
		"timestamp":        {"2026-02-01 10:00", "2026-01-02 10:00"},
		"timestamptz":      {"2026-02-01 10:00+00", "2026-02-01 09:00+00"},
		"interval":         {"-1 days -02:00:00", "-1 days +02:00:00"},
		"double precision": {"0.30000000000000004", "0.3"},
	} {
		t.Run(kind, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Exec("create table invoices (number " + kind + " primary key, status text not null, version int not null default 1)")
			k.Exec("insert into invoices values ($1::text::"+kind+", 'sent'), ($2::text::"+kind+", 'paying')", keys[0], keys[1])
			k.Exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", entity(nil))
			k.Exec("select pawl.beat_janitor('billing')")
			k.Template("billing/pay", object{}, step("pay", object{"claim": object{"default": payClaim(nil)}}))
			rows := func() []string {
				return list[string](k, "select status || ' ' || version from invoices order by number = $1::text::"+kind+" desc", keys[0])
			}
			task := k.pay(keys[0], "admin")
			worker := k.session(german...)
			d := worker.ClaimOne("work_queue")
			worker.commit()
			require.Equal(t, []string{"paying 2", "paying 1"}, rows())

			worker = k.session(american...)
			worker.Finish("work_queue", d)
			worker.commit()
			require.Equal(t, []string{"paid 3", "paying 1"}, rows())
			require.Equal(t, "complete", k.State(task))

			k.Exec("update invoices set status = 'sent' where status = 'paid'")
			k.pay(keys[0], "admin")
			worker = k.session(german...)
			worker.ClaimOne("work_queue")
			worker.commit()
			k.Later(time.Hour)
			janitor := k.session(american...)
			require.EqualValues(t, 1, janitor.janitor()["reverted"])
			janitor.commit()
			require.Equal(t, []string{"sent 5", "paying 1"}, rows())
		})
	}
}

// The claim that is in the way is found by the key's text: who waited for it in a session that writes bytes otherwise was refused.
func TestAKeyOfBytesHasOneTextInEverySession(t *testing.T) {
	k := newCommittingKit(t)
	k.Exec("create table invoices (number bytea primary key, status text not null, version int not null default 1)")
	k.Exec("insert into invoices values ('a-1', 'sent')")
	k.Exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", entity(nil))
	k.Exec("select pawl.beat_janitor('billing')")
	k.Template("billing/pay", object{}, step("pay", object{"claim": object{"default": payClaim(object{"on_busy": "wait"})}}))
	first := k.pay("a-1", "admin")
	worker := k.session("bytea_output = 'hex'")
	d := worker.ClaimOne(queue)
	worker.commit()
	second := k.pay("a-1", "admin")
	worker = k.session("bytea_output = 'escape'")
	require.Empty(t, worker.Claim(queue))
	worker.commit()
	require.Zero(t, get[int](k, "select count(*) from pgmq.q_orchestration_step_results"))
	k.Finish(queue, d)
	k.Exec("update invoices set status = 'sent'")
	k.Expire(queue)
	k.Finish(queue, k.ClaimOne(queue))
	require.Equal(t, []string{"complete", "complete"}, []string{k.State(first), k.State(second)})
}
