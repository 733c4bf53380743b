package sql_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
)

// impatient is a session whose statements end when they wait for a lock.
func (k *kit) impatient() *kit {
	k.Helper()
	session := k.begin()
	session.Exec("set local lock_timeout = '1s'")
	return session
}

// A handler's own transaction may take its time; whoever asks for the same task meanwhile is told that it runs.
func TestDuplicatesAreAnsweredWhileAReportIsOpen(t *testing.T) {
	k := newCommittingKit(t)
	identityTemplates(k)
	id := messaging.NewRequestID().String()
	task := k.Submit("id/plain", object{"key": "k", "request_id": id, "input": aKeyInput})
	d := k.ClaimOne("id_queue")
	open := k.begin()
	require.True(t, open.Report("id_queue", d, done))
	require.Equal(t, "complete", open.State(task))

	asking := k.impatient()
	for name, c := range map[string]struct {
		outcome string
		fields  object
	}{
		"another request":            {"attached", object{"key": "k", "input": aKeyInput}},
		"one that is to be refused":  {"rejected", object{"key": "k", "input": aKeyInput, "on_duplicate": "reject"}},
		"with another input":         {"rejected", object{"key": "k", "input": object{"amount": 2}}},
		"the same request":           {"attached", object{"key": "k", "input": aKeyInput, "request_id": id}},
		"its id, without a key":      {"rejected", object{"input": aKeyInput, "request_id": id}},
		"its id, with another input": {"rejected", object{"key": "k", "input": object{"amount": 2}, "request_id": id}},
	} {
		outcome := asking.Request("id/plain", c.fields)
		require.Equal(t, c.outcome, outcome["outcome"], "%s: %v", name, outcome)
		require.Equal(t, "running", outcome["status"], "%s: %v", name, outcome)
	}
	asking.commit()
	open.commit()
	require.Equal(t, "complete", k.State(task))
	require.Equal(t, "completed", k.Request("id/plain", object{"key": "k", "input": aKeyInput})["status"])
}

func TestARepeatedSubmitDoesNotWaitForAnOpenReport(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("sub/one", nil, step("a"))
	body := plain()
	require.Nil(t, k.submit(body))
	open := k.begin()
	open.Finish("work_queue", k.ClaimOne("work_queue"))
	asking := k.impatient()
	require.Len(t, asking.submit(body, plain()), 2, "they are messages: one task is there")
	asking.commit()
	processing := k.impatient()
	processing.Rest()
	processing.commit()
	open.commit()
	require.Equal(t, "complete", k.State(uuid.MustParse(body["request_id"].(string))))
}

// A transaction that sees the database as it was at its begin does not see who waits for a key by now: its report is applied
// by one that does.
func TestAReportOfAnOlderSnapshotIsAppliedWithAFreshOne(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("snap/key", nil, step("a", object{"key": "${input.k}"}))
	first := k.Submit("snap/key", object{"input": object{"k": "x"}})
	k.Rest()
	d := k.ClaimOne("work_queue")
	handler := k.begin()
	handler.Exec("set transaction isolation level repeatable read")
	handler.Exec("select from pawl.tasks")
	second := k.Submit("snap/key", object{"input": object{"k": "x"}})
	k.Rest()
	require.Equal(t, "waiting", k.steps(second)["a"])
	handler.Finish("work_queue", d)
	handler.commit()
	k.Rest()
	require.Equal(t, "complete", k.State(first))
	require.Equal(t, "complete", k.State(second))
}

func TestASubmitOfAnOlderSnapshotIsAMessage(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("sub/one", nil, step("a"))
	producer := k.begin()
	producer.Exec("set transaction isolation level repeatable read")
	require.Len(t, producer.submit(plain()), 1)
	producer.commit()
}
