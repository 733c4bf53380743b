package sql_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// payInSchema is billing/pay over a table that belongs to the owner of Pawl alone, with columns of limited length.
func payInSchema(k *kit, fields object) {
	k.Helper()
	k.Exec("create schema billing")
	k.Exec("create table billing.bills (number varchar(10) primary key, status varchar(8) not null, version bigint not null default 1)")
	k.Exec("insert into billing.bills values ('A-12345678', 'sent'), ('A-2', 'sent')")
	bills := entity(object{"table": "billing.bills"})
	for name, value := range fields {
		bills[name] = value
	}
	k.Exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", bills)
	k.Exec("select pawl.beat_janitor('billing')")
	k.Template("billing/pay", object{}, step("pay", object{"claim": object{"admin": payClaim(nil)}}), step("tell: pay"))
}

func (k *kit) bill(number string) string {
	k.Helper()
	return get[string](k, "select status || ' ' || version from billing.bills where number = $1", number)
}

func TestOrchestratorRoleEndsAClaimWhoseRowWasHeldAtTheReport(t *testing.T) {
	k := newRolesKit(t)
	payInSchema(k, nil)
	engine, _ := k.login("pawl_orchestrator")
	worker, name := k.login()
	k.Exec("select pawl.grant_queue($1, 'work_queue')", name)
	task := k.pay("A-2", "admin")
	d := worker.ClaimOne("work_queue")
	require.Equal(t, "paying 2", k.bill("A-2"))

	stranger := k.begin()
	stranger.Exec("select from billing.bills where number = 'A-2' for update")
	worker.Finish("work_queue", d)
	require.Equal(t, "paying 2", k.bill("A-2"))
	stranger.commit()
	engine.Rest()
	require.Equal(t, "paid 3", k.bill("A-2"))
	require.Equal(t, "complete", k.steps(task)["pay"])
	require.Empty(t, list[string](k, "select reason from pawl.dead_letters"))
	engine.refused(denied, "select * from billing.bills")
}

func TestWhoRegistersIsTheRoleThatWasSet(t *testing.T) {
	k := newRolesKit(t)
	_, clerk := k.login("pawl_operator")
	k.Exec("create table public.accounts (number text primary key, status text not null, version int not null)")
	accounts := entity(object{"table": "public.accounts"})
	boss := k.begin()
	boss.Exec("set local role " + clerk)
	raised := boss.refused("PW030", "select pawl.register_entity('account', $1, 'ann', 'curious')", accounts)
	require.Contains(t, raised.Message, "you may not update public.accounts yourself")
	boss.Exec("reset role")
	boss.Exec("grant select, update on public.accounts to " + clerk)
	boss.Exec("set local role " + clerk)
	boss.Exec("select pawl.register_entity('account', $1, 'ann', 'theirs')", accounts)
}

// Somebody who may create in public owns functions that fit the arguments better than those of Postgres.
func TestFunctionsInPublicDoNotRunWithTheOwnersRights(t *testing.T) {
	k := newRolesKit(t)
	mallory, name := k.login()
	k.Exec("grant create on schema public to " + name)
	k.Exec("create table public.trap (who text)")
	k.Exec("grant insert on public.trap to public")
	for _, arguments := range []string{"text, text, text, text, regclass, text", "text, text, text, text, regclass, text, text", "text, name, name", "text, text, text"} {
		mallory.Exec("create function public.format(" + arguments + `) returns text language plpgsql as
			'begin insert into public.trap values (current_user); return null; end'`)
	}
	for _, kind := range []string{"varchar, varchar", "bigint, bigint", "text, text", "varchar, text"} {
		mallory.Exec("create function public.same(" + kind + `) returns boolean language plpgsql as
			'begin insert into public.trap values (current_user); return true; end'`)
	}
	for _, kind := range []string{"varchar", "bigint", "text"} {
		mallory.Exec("create operator public.= (leftarg = " + kind + ", rightarg = " + kind + ", function = public.same)")
	}
	mallory.Exec("create function public.jsonb_build_object(text, text, text, text, text, bigint) returns jsonb language plpgsql as" +
		" 'begin insert into public.trap values (current_user); return null; end'")

	operator, _ := k.login("pawl_operator")
	role := get[string](operator, "select current_user")
	k.Exec("create table public.bills (number varchar(10) primary key, status varchar(8) not null, version bigint not null default 1)")
	k.Exec("grant select, update on public.bills to " + role)
	k.Exec("insert into public.bills values ('A-1', 'sent'), ('A-2', 'sent')")
	operator.Exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", entity(object{"table": "bills"}))
	require.Equal(t, "public.bills", get[string](k, "select table_name from pawl.entities"), "a name without a schema is public's")
	operator.Exec("create temp table bills (number text primary key, status text, version int not null)")
	raised := operator.refused("PW030", "select pawl.register_entity('invoice', $1, 'ann', 'mine')", entity(object{"table": "pg_temp.bills"}))
	require.Contains(t, raised.Message, "is not a table of yours")

	k.Exec("select pawl.beat_janitor('billing')")
	k.Template("billing/pay", object{}, step("pay", object{"claim": object{"admin": payClaim(nil)}}))
	k.Exec("select pawl.grant_queue($1, 'work_queue')", name)
	task := k.pay("A-1", "admin")
	mallory.Finish("work_queue", mallory.ClaimOne("work_queue"))
	require.Equal(t, "complete", k.State(task))
	require.Equal(t, []string{"paid 3", "sent 1"}, list[string](k, "select status || ' ' || version from public.bills order by number"))
	require.Empty(t, list[string](k, "select who from public.trap"))
}

func TestTriggersOfARegisteredTableFindWhatIsInPublic(t *testing.T) {
	k := newRolesKit(t)
	payInSchema(k, nil)
	k.Exec("create function public.shout() returns trigger language plpgsql as 'begin perform whisper(new.status); return new; end'")
	k.Exec("create function public.whisper(text) returns void language sql as 'select'")
	k.Exec("create trigger shout after update on billing.bills for each row execute function public.shout()")
	worker, name := k.login()
	k.Exec("select pawl.grant_queue($1, 'work_queue')", name)
	k.pay("A-2", "admin")
	worker.Finish("work_queue", worker.ClaimOne("work_queue"))
	require.Equal(t, "paid 3", k.bill("A-2"))
}

func TestAKeyIsNotCutToTheLengthOfItsColumn(t *testing.T) {
	k := newKit(t)
	payInSchema(k, nil)
	long, short := k.pay("A-123456789", "admin"), k.pay("A-12345678", "admin")
	require.Equal(t, short, k.ClaimOne("work_queue").Task)
	k.Rest()
	require.Equal(t, "claim_failed", k.stepError(long, "pay"))
	require.Equal(t, "paying 2", k.bill("A-12345678"))
}

func TestStatesMustFitTheirColumn(t *testing.T) {
	k := newKit(t)
	payInSchema(k, nil)
	raised := k.refused("PW030", "select pawl.register_entity('invoice', $1, 'ann', 'why')",
		entity(object{"table": "billing.bills", "states": []string{"sent", "paying", "paid", "cancelled"}}))
	require.Contains(t, raised.Message, "state cancelled does not fit column status of billing.bills")
	k.Exec("create type stage as enum ('sent', 'paying')")
	k.Exec("create table staged (number text primary key, status stage not null, version int not null)")
	raised = k.refused("PW030", "select pawl.register_entity('other', $1, 'ann', 'why')", entity(object{"table": "staged"}))
	require.Contains(t, raised.Message, "state paid does not fit column status of staged")

	k.Exec(`create function public.weigh(text) returns boolean language plpgsql as $$ begin raise 'no memory' using errcode = '53200'; end $$`)
	k.Exec("create domain weighed as text check (public.weigh(value))")
	k.Exec("create table heavy (number text primary key, status weighed not null, version int not null)")
	k.refused("53200", "select pawl.register_entity('other', $1, 'ann', 'why')", entity(object{"table": "heavy"}))
}

func TestColumnsOfAnyTypeAreComparedByTheirOwnOperators(t *testing.T) {
	for name, table := range map[string]string{
		"uuid and enum":  "create table bills (number uuid primary key, status stage not null, version int not null default 1)",
		"bigint":         "create table bills (number bigint primary key, status text not null, version int not null default 1)",
		"char and bytes": "create table bills (number char(40) primary key, status char(9) not null, version int not null default 1)",
		"domains":        "create table bills (number named primary key, status named not null, version int not null default 1)",
		"numeric":        "create table bills (number numeric(40, 2) primary key, status name not null, version int not null default 1)",
		"partitions":     "create table bills (number text primary key, status text not null, version int not null default 1) partition by hash (number)",
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Exec("create type stage as enum ('sent', 'paying', 'paid', 'overdue')")
			k.Exec("create domain named as varchar(40) check (value <> '')")
			k.Exec(table)
			number := "17"
			switch name {
			case "uuid and enum":
				number = uuid.NewString()
			case "partitions":
				k.Exec("create table bills_0 partition of bills for values with (modulus 1, remainder 0)")
			}
			k.Exec("insert into bills (number, status) select $1::text::"+map[bool]string{true: "uuid", false: "numeric"}[len(number) > 2]+"::text::"+
				get[string](k, "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'bills'::regclass and attname = 'number'")+", 'sent'", number)
			k.Exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", entity(object{"table": "bills"}))
			k.Exec("select pawl.beat_janitor('billing')")
			k.Template("billing/pay", object{}, step("pay", object{"claim": object{"admin": payClaim(nil)}}))
			task := k.pay(number, "admin")
			k.Finish("work_queue", k.ClaimOne("work_queue"))
			require.Equal(t, "complete", k.State(task))
			require.Equal(t, "paid 3", get[string](k, "select status::text || ' ' || version from bills"))
		})
	}
}

func TestATableThatIsLockedHoldsUpItsStepAlone(t *testing.T) {
	for name, mode := range map[string]string{ // as by alter table, by create index
		"the table": "access exclusive", "the table, shared": "share", "a partition": "access exclusive", "a partition, shared": "share",
	} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			payInSchema(k, nil)
			locked := "billing.bills"
			if strings.Contains(name, "partition") {
				locked = "billing.part"
				k.Exec("alter table billing.bills rename to part")
				k.Exec("create table billing.bills (like billing.part including all) partition by list (number)")
				k.Exec("alter table billing.bills attach partition billing.part default")
			}
			k.Template("shop/one", nil, step("a"))
			task, other := k.pay("A-2", "admin"), k.Submit("shop/one")
			stranger := k.begin()
			stranger.Exec("lock table " + locked + " in " + mode + " mode")
			worker := k.begin()
			worker.Exec("set local statement_timeout = '30s'")
			claimed := worker.Claim("work_queue")
			worker.commit()
			require.Len(t, claimed, 1)
			require.Equal(t, other, claimed[0].Task)
			stranger.commit()
			k.Expire("work_queue")
			k.Finish("work_queue", claimed...)
			require.Equal(t, task, k.ClaimOne("work_queue").Task)
		})
	}
}
