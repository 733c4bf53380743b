package sql_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// login makes a role of the test's own with these memberships and logs in as it.
func (k *kit) login(memberOf ...string) (*kit, string) {
	k.Helper()
	name := fmt.Sprintf("pawl_test_%x", rand.Uint64())
	k.Exec("create role " + name + " login password '" + name + "'")
	for _, role := range memberOf {
		k.Exec("grant " + role + " to " + name)
	}
	config := k.pool.Config()
	config.ConnConfig.User, config.ConnConfig.Password, config.MaxConns = name, name, 1
	pool, err := pgxpool.NewWithConfig(k.Context(), config)
	require.NoError(k, err)
	k.t.Cleanup(func() {
		pool.Close()
		_, err := k.pool.Exec(context.Background(), "drop owned by "+name+"; drop role "+name)
		require.NoError(k, err)
	})
	return kitOn(k.t, pool, pool), name
}

func newRolesKit(t *testing.T) *kit {
	k := newCommittingKit(t)
	k.Exec("select pawl.install_roles()")
	k.Template("shop/one", object{}, step("a"), step("b", object{"queue": "other_queue"}))
	return k
}

const denied = "42501"

func TestWorkerRoleWorksOnItsQueuesAlone(t *testing.T) {
	k := newRolesKit(t)
	worker, name := k.login()
	worker.refused(denied, "select pawl.claim_steps('work_queue', 1, 'w')")
	k.Exec("select pawl.grant_queue($1, 'work_queue')", name)
	task := k.Submit("shop/one")
	d := worker.ClaimOne("work_queue")
	require.Equal(t, "extended", get[[]object](worker, "select pawl.extend_leases('work_queue', $1)",
		[]object{{"msg_id": d.ID, "read_ct": d.ReadCount}})[0]["status"])
	worker.Finish("work_queue", d)
	require.Equal(t, map[string]string{"a": "complete", "b": "enqueued"}, k.steps(task))

	for _, sql := range []string{
		"select pawl.claim_steps('other_queue', 1, 'w')",
		"select pawl.claim_steps('no_such_queue', 1, 'w')",
		"select pawl.claim_steps('orchestration_task_requests', 1, 'w')",
		`select pawl.report_steps('other_queue', '[{"msg_id": 1, "read_ct": 0, "status": "complete"}]', 'w')`,
		`select pawl.report_and_claim_steps('other_queue', '[]', 1, 'w')`,
		`select pawl.extend_leases('other_queue', '[{"msg_id": 1, "read_ct": 0}]')`,
		`select pawl.release_steps('other_queue', '[{"msg_id": 1, "read_ct": 0}]')`,
		"select * from pawl.tasks", "select * from pawl.steps", "delete from pawl.audit", "update pawl.queues set paused = true",
		"select * from pgmq.q_work_queue", "select pgmq.send('orchestration_step_results', '{}'::jsonb)",
		"select * from unnest(pawl_queues.read_work_queue(1, 1, 1))",
		"select pawl.cancel_task('" + task.String() + "', 'w', 'because')",
		"select pawl.apply_step_results(array[1])", "select pawl.install_queue('mine')", "select pawl.grant_queue('" + name + "', 'other_queue')",
		"select pawl.settle_tasks(array['" + task.String() + "'::uuid])", "select pawl.install_roles()", "select pawl.begin_deliveries('other_queue', '{}', 'w')",
	} {
		worker.refused(denied, sql)
	}
	k.Exec("select pawl.revoke_queue($1, 'work_queue')", name)
	worker.refused(denied, "select pawl.claim_steps('work_queue', 1, 'w')")
}

func TestSearchPathOfAWorkerReachesNothing(t *testing.T) {
	k := newRolesKit(t)
	worker, name := k.login()
	k.Exec("select pawl.grant_queue($1, 'work_queue')", name)
	task := k.Submit("shop/one")
	worker.Exec("create temp table trap (x int)")
	worker.Exec(`create function pg_temp.uuid_eq(uuid, uuid) returns boolean language plpgsql as
		'begin insert into trap values (1); return true; end'`)
	worker.Exec("create operator pg_temp.= (leftarg = uuid, rightarg = uuid, function = pg_temp.uuid_eq)")
	worker.Exec("set search_path = pg_temp, pg_catalog")
	worker.Finish("work_queue", worker.ClaimOne("work_queue"))
	require.Equal(t, "complete", k.steps(task)["a"])
	require.Zero(t, get[int64](worker, "select count(*) from trap"))
}

func TestRoleThatWasSetCountsAsTheCaller(t *testing.T) {
	k := newRolesKit(t)
	_, granted := k.login()
	k.Exec("select pawl.grant_queue($1, 'work_queue')", granted)
	boss, _ := k.login(granted)
	boss.Exec("select pawl.claim_steps('work_queue', 1, 'w')")
	boss.Exec("set role " + pgx.Identifier{granted}.Sanitize())
	boss.Exec("select pawl.claim_steps('work_queue', 1, 'w')")
	boss.Exec("set role pawl_worker")
	boss.refused(denied, "select pawl.claim_steps('work_queue', 1, 'w')")
}

func TestProducerRoleOnlySends(t *testing.T) {
	k := newRolesKit(t)
	producer, _ := k.login("pawl_producer")
	producer.Exec(`select pgmq.send('orchestration_task_requests', '{"template": "shop/one", "input": {}}'::jsonb)`)
	require.Equal(t, 1, get[int](k, "select count(*) from pgmq.q_orchestration_task_requests"))
	for _, sql := range []string{
		"select message from pgmq.q_orchestration_task_requests", "delete from pgmq.q_orchestration_task_requests",
		"select pgmq.read('orchestration_task_requests', 1, 1)", `select pgmq.send('work_queue', '{}'::jsonb)`,
		"select pawl.claim_steps('work_queue', 1, 'w')", "select * from pawl.tasks", "select pgmq.create('mine')",
	} {
		producer.refused(denied, sql)
	}
}

func TestOperatorRoleReadsAndCommands(t *testing.T) {
	k := newRolesKit(t)
	task := k.Submit("shop/one")
	operator, _ := k.login("pawl_operator")
	require.Equal(t, "steps_in_process", operator.State(task))
	operator.Exec("select pawl.cancel_task($1, 'ann', 'wrong')", task)
	require.Equal(t, "cancelled", k.State(task))
	for _, sql := range []string{
		"update pawl.tasks set tags = '{}'", "delete from pawl.audit", "delete from pawl.operations",
		"select pawl.claim_steps('work_queue', 1, 'w')", "select pawl.apply_step_results(array[1])", "select pawl.settle_tasks('{}')",
	} {
		operator.refused(denied, sql)
	}
	k.Exec("create table secrets (id int primary key, s text, v int not null)")
	raised := operator.refused("PW030", "select pawl.register_entity('secret', $1, 'ann', 'curious')",
		entity(object{"table": "secrets", "key": "id", "status": "s", "version": "v"}))
	require.Contains(t, raised.Message, "you may not update public.secrets yourself")
}

func TestOrchestratorRoleRunsTheEngine(t *testing.T) {
	k := newRolesKit(t)
	engine, _ := k.login("pawl_orchestrator")
	task := engine.Submit("shop/one")
	engine.Tick()
	require.Equal(t, []string{"a"}, k.work("work_queue"))
	engine.Rest()
	k.work("other_queue")
	engine.Rest()
	require.Equal(t, "complete", k.State(task))
	engine.Template("shop/later", object{}, step("a", object{"queue": "later_queue"})) // its queue is made with the owner's rights
	later := engine.Submit("shop/later")
	require.Equal(t, []string{"a"}, engine.work("later_queue"))
	require.Equal(t, "complete", engine.State(later))
	engine.refused(denied, "select pawl.install_roles()")
	engine.refused(denied, "drop table pawl.tasks")
	k.sound()
}

func TestRolesAreInstalledAgainWithNewFunctions(t *testing.T) {
	k := newRolesKit(t)
	worker, name := k.login()
	k.Exec("select pawl.grant_queue($1, 'work_queue')", name)
	k.Exec("alter function pawl.claim_steps security invoker")
	worker.refused(denied, "select pawl.claim_steps('work_queue', 1, 'w')")
	k.Exec("select pawl.refresh_roles()")
	worker.Exec("select pawl.claim_steps('work_queue', 1, 'w')")
}

func TestRolesCostNothingWhereTheyAreNotInstalled(t *testing.T) {
	k := newKit(t)
	k.Exec("select pawl.refresh_roles()")
	require.Zero(t, get[int](k, `select count(*) from pg_proc p where p.proname = 'claim_steps' and p.prosecdef`))
}

func TestAQueueThatSomebodyElseMadeIsWorkedLikeAnyOther(t *testing.T) {
	k := newRolesKit(t)
	ann, name := k.login()
	who := pgx.Identifier{name}.Sanitize()
	for _, grant := range []string{"usage, create on schema pgmq", "all on all tables in schema pgmq", "all on all sequences in schema pgmq"} {
		k.Exec("grant " + grant + " to " + who)
	}
	ann.Exec("select pgmq.create('ann_queue')")
	k.Template("shop/ann", nil, step("a", object{"queue": "ann_queue"}))
	engine, _ := k.login("pawl_orchestrator")
	task := engine.Submit("shop/ann")
	engine.Exec("select pawl.reconcile('r')")
	require.Equal(t, []string{"a"}, engine.work("ann_queue"))
	require.Equal(t, "complete", k.State(task))
	operator, _ := k.login("pawl_operator")
	operator.Exec("select from pgmq.q_ann_queue")
}
