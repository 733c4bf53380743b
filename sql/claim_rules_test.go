package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func definitionWith(name string, claim object) object {
	return object{"namespace": "billing", "name": name, "version": "1", "steps": []object{
		{"no": 0, "name": "pay", "handler": "do.pay", "queue": "work_queue", "needs": []int{}, "claim": object{"admin": claim}}}}
}

func TestClaimRulesAreNamedByNumber(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	for _, c := range []struct {
		want   string
		fields object
	}{
		{"rule 1: ", object{"into": 5}},
		{"rule 1: ", object{"revert_to": nil}},
		{"rule 2: stolen is not a state of invoice", object{"into": "stolen"}},
		{"rule 3: ", object{"into": "overdue", "revert_to": "overdue"}},
		{"rule 4: ", object{"from": "overdue", "into": "overdue"}},
		{"rule 5: ", object{"into": "overdue", "on_success": "overdue"}},
		{"rule 6: paying of invoice reverts to overdue here, but to sent in step pay of billing/pay@1", object{"from": "overdue", "revert_to": "overdue"}},
		{"entity 'letter' is not registered", object{"entity": "letter"}},
	} {
		raised := k.refused("PW032", "select pawl.register_template($1)", definitionWith("other", payClaim(c.fields)))
		require.Contains(t, raised.Message, "billing/other, step pay, claim admin: ")
		require.Contains(t, raised.Message, c.want)
	}
	k.Exec("select pawl.register_template($1)", definitionWith("other", payClaim(nil)))
}

func TestClaimStateWithoutAJanitorIsRefused(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.Exec("create table letters (id bigint primary key, state text, revision bigint not null default 0)")
	k.Exec("select pawl.register_entity('letter', $1, 'ann', 'new')", object{"table": "letters", "key": "id", "status": "state",
		"version": "revision", "states": []string{"sent", "paying", "paid"}, "module": "post", "claim_limit": "1 minute"})
	raised := k.refused("PW032", "select pawl.register_template($1)", definitionWith("post", payClaim(object{"entity": "letter"})))
	require.Contains(t, raised.Message, "module post has no janitor")
	k.Exec("select pawl.beat_janitor('post')")
	k.Exec("select pawl.register_template($1)", definitionWith("post", payClaim(object{"entity": "letter"})))
	require.Empty(t, list[string](k, "select template from pawl.claim_coverage()"))

	k.Exec("delete from pawl.janitors where module = 'post'")
	require.Equal(t, []string{"billing/post@1, step pay, state paying: module has no janitor (post)"}, list[string](k,
		"select format('%s, step %s, state %s: %s (%s)', template, step, state, problem, module) from pawl.claim_coverage()"))
	require.Equal(t, []any{"billing/post@1"}, get[[]any](k, "select pawl.park_templates('ann', 'no janitor yet')"))
	require.Equal(t, 1, get[int](k, "select count(*) from pawl.templates where parked_reason like 'entity claims: module has no janitor%'"))
	k.Exec("select pawl.beat_janitor('post')")
	require.Zero(t, get[int](k, "select count(*) from pawl.templates where parked_reason is not null"))
}

func TestEntitiesMustFitTheirTables(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.Exec("create view v as select * from invoices")
	k.Exec("create table loose (number text, status text, version int not null, note text)")
	for _, c := range []struct {
		want   string
		fields object
	}{
		{"unknown setting tabel", object{"tabel": "x"}},
		{"there is no table nowhere", object{"table": "nowhere"}},
		{"is not a table of yours", object{"table": "v"}},
		{"pawl.tasks is not a table of yours", object{"table": "pawl.tasks"}},
		{"must name three columns", object{"status": "state"}},
		{"must name three columns", object{"status": "number"}},
		{"column number of loose is not unique", object{"table": "loose"}},
		{"must be int or bigint", object{"version": "status", "status": "version"}},
		{"states must list", object{"states": []string{}}},
		{"applied templates use its states sent", object{"states": []string{"paying", "paid"}}},
		{"module must name", object{"module": ""}},
		{"claim_limit must be positive", object{"claim_limit": "0"}},
		{"claim_limit must be positive, 10 years at most", object{"claim_limit": "-infinity"}},
		{"claim_limit must be positive, 10 years at most", object{"claim_limit": "infinity"}},
		{"claim_limit must be positive, 10 years at most", object{"claim_limit": "100000 years"}},
		{"claim_limit must be positive, 10 years at most", object{"claim_limit": "soon"}},
	} {
		require.Contains(t, k.refused("PW030", "select pawl.register_entity('invoice', $1, 'ann', 'why')", entity(c.fields)).Message, c.want)
	}
	k.refused("PW023", "select pawl.register_entity('invoice', $1, '', 'why')", entity(nil))
	require.Equal(t, "unchanged", k.object("select pawl.register_entity('invoice', $1, 'ann', 'why')", entity(nil))["outcome"])
	k.pay("A-1", "admin")
	k.ClaimOne("work_queue")
	k.refused("PW031", "select pawl.register_entity('invoice', $1, 'ann', 'why')", entity(object{"claim_limit": "1 minute"}))
}

func TestIdentifiersOfEntitiesAreQuoted(t *testing.T) {
	k := newKit(t)
	k.Exec(`create schema "Odd; schema"`)
	k.Exec(`create type "Odd; schema"."mood's" as enum ('sent', 'paying', 'paid')`)
	k.Exec(`create table "Odd; schema"."in""voices" ("the key" int primary key, "st'atus" "Odd; schema"."mood's", "ver sion" bigint not null default 0)`)
	k.Exec(`insert into "Odd; schema"."in""voices" values (7, 'sent')`)
	k.Exec("select pawl.register_entity('invoice', $1, 'ann', 'odd')", object{"table": `"Odd; schema"."in""voices"`, "key": "the key",
		"status": "st'atus", "version": "ver sion", "states": []string{"sent", "paying", "paid"}, "module": "billing"})
	k.Exec("select pawl.beat_janitor('billing')")
	k.Template("billing/pay", object{}, step("pay", object{"claim": object{"default": payClaim(nil)}}))
	good := k.Submit("billing/pay", object{"input": object{"invoice": 7}})
	bad := k.Submit("billing/pay", object{"input": object{"invoice": "7); drop table pawl.tasks; --"}})
	k.work("work_queue")
	require.Equal(t, []string{"complete", "error"}, []string{k.State(good), k.State(bad)})
	require.Equal(t, "paid", get[string](k, `select "st'atus"::text from "Odd; schema"."in""voices"`))
}
