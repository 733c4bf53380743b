package sql_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	engine "github.com/pawl-dev/pawl/test/kit"
)

// told are the outcomes of messages in words, in the order of the messages.
func told(k *kit, messages []int64, outcomes []object) []string {
	k.Helper()
	require.Len(k, outcomes, len(messages))
	words := make([]string, len(messages))
	for i, id := range messages {
		for _, o := range outcomes {
			if int64(o["msg_id"].(float64)) != id {
				continue
			}
			words[i] = o["outcome"].(string)
			if refusal, ok := o["error"].(object); ok {
				words[i] = refusal["error"].(string)
			}
		}
	}
	return words
}

// heldByTheirTasks asserts that each open identity is that of a task with its key, and each open task with a key has its identity.
func (k *kit) heldByTheirTasks() {
	k.Helper()
	require.Empty(k, list[string](k, `select concat_ws(' ', coalesce(i.key, t.key), i.task_id, t.task_id) from pawl.task_identities i
		full join (select * from pawl.tasks where key is not null and finalized_at is null) t
			on t.task_id = i.task_id and t.scope = i.scope and t.key = i.key and t.epoch = i.epoch
		where (i.task_id is null or t.task_id is null) and i.expires_at is null`), "identities and tasks differ")
}

// One request_id with several keys in one batch makes one task; the other keys are as if they had never been named.
func TestOneRequestIDWithSeveralKeysInOneBatch(t *testing.T) {
	mismatch := "TaskInputMismatch"
	for name, c := range map[string]struct {
		requests []object
		want     []string
		key      any
	}{
		"two keys":                     {[]object{{"key": "k1"}, {"key": "k2"}}, []string{"created", mismatch}, "k1"},
		"two keys, the other order":    {[]object{{"key": "k2"}, {"key": "k1"}}, []string{mismatch, "created"}, "k1"},
		"no key, then one":             {[]object{{}, {"key": "k1"}}, []string{"created", mismatch}, nil},
		"a key, then none":             {[]object{{"key": "k1"}, {}}, []string{mismatch, "created"}, nil},
		"one key of two templates":     {[]object{{"key": "k1"}, {"key": "k1", "template": "id/hold"}}, []string{mismatch, "created"}, "k1"},
		"a key twice, then another":    {[]object{{"key": "k1"}, {"key": "k1"}, {"key": "k2"}}, []string{"created", "attached", mismatch}, "k1"},
		"a key that another task has":  {[]object{{"key": "held"}, {"key": "k2"}}, []string{"attached", "created"}, "k2"},
		"other input, and another key": {[]object{{"key": "k1"}, {"key": "k1", "input": 2}, {"key": "k2"}}, []string{"created", mismatch, mismatch}, "k1"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			identityTemplates(k)
			held := k.Submit("id/plain", object{"key": "held", "input": aKeyInput})
			id := uuid.Must(uuid.NewV7())
			messages := make([]int64, len(c.requests))
			for i, fields := range c.requests {
				messages[i] = k.Send("id/plain", object{"request_id": id.String(), "input": aKeyInput}, fields)
			}
			require.Equal(t, c.want, told(k, messages, get[[]object](k, engine.ProcessRequests, messages)))
			require.Equal(t, []uuid.UUID{id}, list[uuid.UUID](k, "select task_id from pawl.tasks where task_id <> $1", held))
			require.Equal(t, c.key, get[any](k, "select key from pawl.tasks where task_id = $1", id))
			require.Equal(t, len(messages)-1, get[int](k, "select count(*) from pawl.absorbed"), "each other one leaves a trace")
			k.heldByTheirTasks()
			for _, key := range []string{"k1", "k2"} {
				if key != c.key {
					k.Submit("id/plain", object{"key": key, "input": aKeyInput})
				}
			}
			k.heldByTheirTasks()
			k.sound()
		})
	}
}

// The same in two transactions: who comes second finds its request_id taken only when it creates the task, and has to
// decide anew. The key goes back to whom it was taken from.
func TestOneRequestIDWithSeveralKeysInTwoTransactions(t *testing.T) {
	for _, first := range []object{{"key": "k1"}, {}} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			k := newCommittingKit(t)
			identityTemplates(k)
			ended := k.Submit("id/plain", object{"key": "k2", "input": aKeyInput})
			k.endStep(ended, failed)
			id := object{"request_id": uuid.Must(uuid.NewV7()).String(), "input": aKeyInput}
			one, two := []int64{k.Send("id/plain", id, first)}, []int64{k.Send("id/plain", id, object{"key": "k2"})}
			earlier, later := k.begin(), k.begin()
			pid := later.pid()
			require.Equal(t, []string{"created"}, told(k, one, get[[]object](earlier, engine.ProcessRequests, one)))
			waits := later.start(engine.ProcessRequests, two)
			k.untilWaiting(pid)
			earlier.commit()
			require.True(t, isCode(<-waits, "40001"), "the message is worked again")
			require.Equal(t, []string{"TaskInputMismatch"}, told(k, two, get[[]object](k, engine.ProcessRequests, two)))
			require.Equal(t, ended, get[uuid.UUID](k, "select task_id from pawl.task_identities where key = 'k2'"))
			k.heldByTheirTasks()
			k.sound()
		})
	}
}
