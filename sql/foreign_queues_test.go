package sql_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// owned is a role's own database of Pawl: whatever was made there belongs to the role, which is no superuser.
func (k *kit) owned() *kit {
	k.Helper()
	owner, name := k.login()
	who := pgx.Identifier{name}.Sanitize()
	k.Exec("alter role " + who + " createrole")
	for _, schema := range []string{"pawl", "pawl_queues", "pgmq"} {
		k.Exec("alter schema " + schema + " owner to " + who)
	}
	for _, alter := range list[string](k, `select format('alter %s %s owner to '||$1, case c.relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass)
		from pg_class c where c.relnamespace in ('pawl'::regnamespace, 'pawl_queues'::regnamespace, 'pgmq'::regnamespace) and c.relkind in ('r', 'p', 'S')
		and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i'))
		union all select format('alter routine %s owner to '||$1, p.oid::regprocedure) from pg_proc p
		where p.pronamespace in ('pawl'::regnamespace, 'pawl_queues'::regnamespace, 'pgmq'::regnamespace)`, who) {
		k.Exec(alter)
	}
	k.t.Cleanup(func() {
		_, err := k.pool.Exec(context.Background(), "reassign owned by "+who+" to current_user")
		require.NoError(k, err)
	})
	return owner
}

func TestAQueueOfSomebodyElseDoesNotStopTheRoles(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("shop/one", nil, step("a"))
	owner := k.owned()
	_, stranger := k.login()
	who := pgx.Identifier{stranger}.Sanitize()
	k.Exec("select pgmq.create('theirs')")
	k.Exec("alter table pgmq.q_theirs owner to " + who)
	k.Exec("alter table pgmq.a_theirs owner to " + who)
	for range 2 { // and again, as each migration does
		owner.Exec("select pawl.install_roles()")
	}
	operator, _ := k.login("pawl_operator")
	engine, _ := k.login("pawl_orchestrator")
	operator.Exec("select count(*) from pgmq.q_work_queue, pgmq.a_work_queue, pgmq.meta, pgmq.q_orchestration_step_results")
	operator.Exec("select last_value from pgmq.q_work_queue_msg_id_seq")
	operator.refused(denied, "select from pgmq.q_theirs")
	task := engine.Submit("shop/one")
	require.Equal(t, []string{"a"}, engine.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
}
