package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// stale puts so many messages of a task that has been cancelled into the queue.
func (k *kit) stale(count int) {
	k.Helper()
	for range count {
		k.Exec("select pawl.cancel_task($1, 'ann', 'not wanted')", k.Submit("look/one"))
	}
}

// claim claims so many steps, with options.
func (k *kit) claim(quantity int, options object) []delivery {
	k.Helper()
	return get[[]delivery](k, "select pawl.claim_steps('work_queue', $1, 'w', $2)", quantity, options)
}

// reads counts the messages that were read and are still there.
func (k *kit) reads() int {
	k.Helper()
	return get[int](k, "select coalesce(sum(read_ct), 0)::int from pgmq.q_work_queue")
}

func TestAClaimLooksBehindWhatItOnlyAbsorbs(t *testing.T) {
	for name, c := range map[string]struct {
		quantity int
		options  object
	}{
		"one by one":      {1, object{}},
		"some":            {4, object{}},
		"as many as fit":  {100, object{"max_bytes": 1}},
		"exactly as many": {12, object{}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("look/one", nil, step("a"))
			k.stale(12)
			live := k.Submit("look/one")
			claimed := k.claim(c.quantity, c.options)
			require.Len(k, claimed, 1)
			require.Equal(k, live, claimed[0].Task)
			require.Equal(k, 12, get[int](k, "select count(*)::int from pawl.absorbed where reason = 'stale delivery'"))
			k.sound()
		})
	}
}

func TestAClaimLooksBehindWhatItRefuses(t *testing.T) {
	k := newKit(t)
	k.Template("look/one", nil, step("a"))
	k.Exec(`insert into pgmq.q_work_queue (vt, message) select clock_timestamp(), '{"no": "step"}' from generate_series(1, 3)`)
	live := k.Submit("look/one")
	claimed := k.claim(1, object{})
	require.Len(k, claimed, 1)
	require.Equal(k, live, claimed[0].Task)
	require.Equal(k, 3, get[int](k, "select count(*)::int from pawl.dead_letters"))
}

func TestAClaimThatBeganSomethingReadsNoMore(t *testing.T) {
	k := newKit(t)
	k.Template("look/one", nil, step("a"))
	k.stale(1)
	k.Submit("look/one")
	k.stale(2)
	k.Submit("look/one")
	require.Len(k, k.claim(2, object{}), 1, "the first that is live, with what was stale before it")
	require.Equal(k, 1, k.reads())
}

// An error of the infrastructure says nothing about the messages: reading on would cost each of them a delivery.
func TestAClaimThatTheInfrastructureFailsReadsNoMore(t *testing.T) {
	k := newKit(t)
	k.Template("look/one", nil, step("a"))
	for range 3 {
		k.Submit("look/one")
	}
	k.Exec(`create function pawl.fail() returns trigger language plpgsql as
		$$ begin raise exception 'no space left' using errcode = '53100'; end $$`)
	k.Exec(`create trigger fail before update on pawl.steps for each row execute function pawl.fail()`)
	require.Empty(k, k.claim(1, object{}))
	require.Equal(k, 1, k.reads())
}

// What a claim may absorb is bounded, so that it stays short. It tells that there may be more.
func TestAClaimThatOnlyAbsorbsEndsAndTellsTheOthers(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("look/one", nil, step("a"))
	k.stale(25)
	live := k.Submit("look/one")
	require.Equal(k, []string{"work_queue"}, k.announced(func() { require.Empty(k, k.claim(1, object{})) }))
	require.Equal(k, 20, get[int](k, "select count(*)::int from pawl.absorbed"))
	require.Empty(k, k.announced(func() {
		claimed := k.claim(1, object{})
		require.Len(k, claimed, 1)
		require.Equal(k, live, claimed[0].Task)
	}))
}

// R5: a claim that came with a report wakes nobody for what was stale, only for what its last read may have left.
func TestAClaimThatReadsOnWakesTheOthersForWhatItLeft(t *testing.T) {
	for name, live := range map[string]int{"a last read that is short": 0, "a last read that is full": 1} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Template("look/one", nil, step("a"))
			k.Template("look/two", nil, step("a"), step("b: a"))
			k.Submit("look/two")
			held := k.ClaimOne(queue)
			k.stale(2)
			for range live {
				k.Submit("look/one")
			}
			told := k.announced(func() {
				answer := get[struct{ Claimed []delivery }](k, "select pawl.report_and_claim_steps('work_queue', $1, 2, 'w')",
					reportsOf("complete", held))
				require.Len(k, answer.Claimed, live+1, "the report made b ready, behind what is stale")
			})
			require.Len(k, told, live)
		})
	}
}
