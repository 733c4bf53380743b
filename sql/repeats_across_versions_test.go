package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
)

func TestARepeatAcrossADeployMeetsItsOwnTask(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	k.Template("shop/two", nil, step("a"))
	id := object{"request_id": messaging.NewRequestID().String()}
	task := k.Submit("shop/one", id)
	next := k.Template("shop/one", object{"version": "2"}, step("a"), step("b: a"))

	repeat := k.Request("shop/one", id)
	require.Equal(t, "attached", repeat["outcome"], "%v", repeat)
	require.Equal(t, task.String(), repeat["task_id"])
	for name, body := range map[string]object{"another version": {"template": "shop/one@2"}, "another template": {"template": "shop/two"},
		"another input": {"input": object{"x": 1}}} {
		body := merged(object{"template": "shop/one", "input": object{}}, id, body)
		msg := get[int64](k, "select pgmq.send('orchestration_task_requests', $1::jsonb)", body)
		resolved := next
		if name == "another template" {
			resolved = get[int](k, "select template_id from pawl.templates where name = 'two'")
		}
		outcome := get[[]object](k, "select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'template_id', $2::int)))", msg, resolved)[0]
		require.Equal(t, "rejected", outcome["outcome"], name)
		require.Equal(t, "TaskInputMismatch", outcome["error"].(object)["error"], name)
	}
}

func TestARepeatOfAHandlersRequestMayNameNoOtherQueue(t *testing.T) {
	k := newKit(t)
	work, other := k.adhoc("work_queue"), k.adhoc("other_queue")
	body := object{"request_id": messaging.NewRequestID().String(), "handler": "send", "queue": "work_queue", "input": object{}}
	process := func(template int) object {
		msg := get[int64](k, "select pgmq.send('orchestration_task_requests', $1::jsonb)", body)
		return get[[]object](k, "select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'template_id', $2::int)))", msg, template)[0]
	}
	require.Equal(t, "created", process(work)["outcome"])
	require.Equal(t, "attached", process(work)["outcome"])
	body["queue"] = "other_queue"
	require.Equal(t, "rejected", process(other)["outcome"])
}

// adhoc is the template of the handler send on a queue.
func (k *kit) adhoc(queue string) int {
	k.Helper()
	return get[int](k, "select pawl.adhoc_template('default', 'send', $1)", queue)
}
