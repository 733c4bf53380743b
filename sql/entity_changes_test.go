package sql_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// otherInvoices is a second table that the entity could mean. Its row A-1 is in the state that a claim of the first leaves.
func otherInvoices(k *kit) object {
	k.Helper()
	k.Exec("create table other_invoices (number text primary key, status text not null, version int not null default 1)")
	k.Exec("insert into other_invoices values ('A-1', 'paying', 2)")
	return entity(object{"table": "other_invoices"})
}

const registers = "select pawl.register_entity('invoice', $1, 'ann', 'why')"

func TestAnEntityDoesNotChangeWhileAClaimBegins(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	other := otherInvoices(k)
	worker, operator := k.begin(), k.begin()
	d := worker.ClaimOne("work_queue")
	require.Equal(t, "unchanged", operator.object(registers, entity(nil))["outcome"], "it waits for nobody")
	pid := operator.pid()
	registered := operator.start(registers, other)
	operator.untilWaitingOr(registered, pid)
	worker.commit()
	require.True(t, isCode(<-registered, "PW031"))

	k.Finish("work_queue", d)
	require.Equal(t, "paid 3", k.invoice("A-1"))
	require.Equal(t, "paying 2", get[string](k, "select status || ' ' || version from other_invoices"))
	require.Zero(t, get[int](k, "select count(*)::int from pawl.entity_claims"))
	require.Equal(t, "changed", k.object(registers, other)["outcome"])
}

func TestAClaimDoesNotBeginWhileItsEntityChanges(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	k.Template("shop/one", nil, step("a"))
	task, free := k.pay("A-1", "admin"), k.Submit("shop/one")
	other := otherInvoices(k)
	k.Exec("update other_invoices set status = 'sent'")
	operator := k.begin()
	require.Equal(t, "changed", operator.object(registers, other)["outcome"])
	worker := k.withTimeouts()
	d := worker.ClaimOne("work_queue")
	worker.commit()
	require.Equal(t, free, d.Task, "it waits for nobody")
	k.Finish("work_queue", d)
	operator.commit()
	k.Expire("work_queue")
	d = k.ClaimOne("work_queue")
	require.Equal(t, task, d.Task)
	k.Finish("work_queue", d)
	require.Equal(t, []string{"sent 1", "paid 4"}, []string{k.invoice("A-1"), get[string](k, "select status || ' ' || version from other_invoices")})
}

// Neither sees what the other has not committed: the later of the two waits, and is refused.
func TestATemplateAndAChangeOfItsEntityDoNotPassEachOther(t *testing.T) {
	const change, template = "select pawl.register_entity('invoice', $1, 'ann', 'no overdue')", "select pawl.register_template($1)"
	fewer := entity(object{"states": []string{"sent", "paying", "paid"}})
	chases := definitionWith("chase", payClaim(object{"from": "overdue"}))
	for name, order := range map[string]struct {
		first, second, code string
		given, then         object
	}{
		"the change first":   {change, template, "PW032", fewer, chases},
		"the template first": {template, change, "PW030", chases, fewer},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			invoices(k, nil)
			first, second := k.begin(), k.begin()
			first.Exec(order.first, order.given)
			pid := second.pid()
			done := second.start(order.second, order.then)
			k.untilWaitingOr(done, pid)
			first.commit()
			var refused *pgconn.PgError
			require.ErrorAs(t, <-done, &refused)
			require.Equal(t, order.code, refused.Code, "%v", refused)
		})
	}
}

func TestATemplateIsNotCheckedAgainstWhatItsEntityWas(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	applying := k.begin()
	applying.Exec("set transaction isolation level repeatable read")
	require.NotZero(t, get[int](applying, "select count(*) from pawl.entities"))
	require.Equal(t, "changed", k.object(registers, entity(object{"states": []string{"sent", "paying", "paid"}}))["outcome"])
	raised := applying.refused("PW021", "select pawl.register_template($1)", definitionWith("chase", payClaim(object{"from": "overdue"})))
	require.NotEmpty(t, raised.Hint)
}
