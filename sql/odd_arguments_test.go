package sql_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is no value at all is refused at the door, in Pawl's words, and nothing is lost: never by a cast somewhere within.
func TestOddArgumentsAreRefusedWithAHint(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	k.Exec("create table invoices (number text primary key, status text not null, version int not null default 1)")
	k.Submit("shop/one")
	dead(k)
	const lease = `[{"msg_id": %s, "read_ct": %s}]`
	calls := map[string][]string{ // %s is the odd value, an SQL literal
		"PW016 select pawl.report_steps('work_queue', %s, 'w')": {`'{}'`, `'1'`, `'null'`,
			`'[{"msg_id": 1.5, "read_ct": 1, "status": "complete"}]'`, `'[{"msg_id": 1e30, "read_ct": 1, "status": "complete"}]'`,
			`'[{"msg_id": 1, "read_ct": 1e12, "status": "complete"}]'`},
		"PW024 select pawl.extend_leases('work_queue', %s)": {`'{}'`, `'"x"'`, `'null'`, `'[1]'`, `'[{}]'`, `'[null]'`,
			"'" + fmt.Sprintf(lease, "1.5", "1") + "'", "'" + fmt.Sprintf(lease, "1", "1e12") + "'", "'" + fmt.Sprintf(lease, `"x"`, "1") + "'"},
		"PW024 select pawl.release_steps('work_queue', %s)": {`'{}'`, `'1'`, `'[[]]'`, "'" + fmt.Sprintf(lease, "1e30", "1") + "'"},
		"PW024 select pawl.claim_steps('work_queue', 1, 'w', %s)": {`'[]'`, `'"x"'`, `'null'`, `'{"lease_ms": "x"}'`, `'{"lease_ms": 1.5}'`,
			`'{"lease_ms": 1e30}'`, `'{"lease_ms": {}}'`, `'{"max_bytes": 0}'`, `'{"max_bytes": -1}'`, `'{"max_bytes": "x"}'`, `'{"max_bytes": 1e30}'`},
		"PW024 select pawl.configure_template('shop', 'one', %s, 'ann', 'why')": {"null", `'null'`, `'[]'`, `'1'`, `'"x"'`},
		"PW030 select pawl.register_entity('invoice', %s, 'ann', 'why')": {"null", `'null'`, `'[]'`, `'1'`, `'{"table": ""}'`,
			`'{"table": "a.b.c.d"}'`, `'{"table": "elsewhere.public.invoices"}'`, `'{"table": "in\"voices"}'`, states(`[null]`), states(`["a", 5]`), states(`[["a"]]`)},
		"PW013 select pawl.register_template(%s, null)":            {"null", `'null'`, `'[]'`, `'{"namespace": "shop", "name": "two", "version": "1"}'`},
		"PW024 select pawl.drop_dead_letters(%s, 1, 'ann', 'why')": {`'{"before": "2020-01-01 Nowhere/Zone"}'`, `'{"reason": "\\"}'`, `'{"ids": [1.5]}'`},
		"PW024 select pawl.beat_janitor(%s)":                       {"null", "''"},
		"42704 select pawl.grant_queue(%s, 'work_queue')":          {"null", "''", "'no such \"role'"},
		"42704 select pawl.revoke_queue(%s, 'work_queue')":         {"null", "''", "'no such \"role'"},
		"PW010 select pawl.revoke_queue(current_user::text, %s)":   {"null", "''", "'nope'", "'No\"pe'"},
		"PW021 select pawl.transition_task_state_atomic(%s)":       {moved(k, "null"), moved(k, "'blocked_by_failures'")},
		"PW020 select pawl.transition_task_state_atomic(%s)":       {"null, 'steps_in_process', 'waiting_for_retry'"},
		"PW012 select pawl.register_template(%s)":                  {`'{"namespace":"shop","name":"two","version":"1","steps":[{"no":0,"name":"a","handler":"h","queue":"q","needs":[0]}]}'`},
		"PW032 select pawl.register_template(%s)":                  {`'{"namespace":"shop","name":"two","version":"1","steps":[{"no":0,"name":"a","handler":"h","queue":"q","needs":[],"claim":{"admin":{"id":"x"}}}]}'`},
	}
	for call, values := range calls {
		for _, value := range values {
			raised := k.refused(call[:5], fmt.Sprintf(call[6:], value))
			require.NotEmpty(t, raised.Hint, "%s: %s", call, value)
		}
	}
	require.Equal(t, 1, get[int](k, "select count(*) from pawl.dead_letters where status = 'open'"))
	k.Finish(queue, k.ClaimOne(queue))
}

// dead makes a dead letter, without which a filter's pattern is not looked at.
func dead(k *kit) {
	k.Helper()
	k.Exec("select pgmq.send('orchestration_step_results', '{}')")
	k.Rest()
	require.Equal(k, 1, get[int](k, "select count(*) from pawl.dead_letters where status = 'open'"))
}

// states are an entity's settings with these states.
func states(list string) string {
	return `'{"table": "invoices", "key": "number", "status": "status", "version": "version", "module": "billing", "states": ` + list + `}'`
}

// moved are the arguments that move the only task from where it is.
func moved(k *kit, next string) string {
	k.Helper()
	return fmt.Sprintf("'%s', 'steps_in_process', %s", get[string](k, "select task_id::text from pawl.tasks"), next)
}
