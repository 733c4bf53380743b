package sql_test

import (
	"crypto/rand"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomHex does not compress: what is indexed by its value must fit into a page.
func randomHex(bytes int) string {
	noise := make([]byte, bytes/2)
	_, _ = rand.Read(noise) // never fails
	return hex.EncodeToString(noise)
}

func TestAVastRequestIDBecomesADeadLetterBesideItsNeighbours(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	vast := randomHex(16_000)
	good, bad := k.Send("shop/one"), k.Send("shop/one", object{"request_id": vast})
	outcomes := get[[]object](k, `select pawl.process_task_requests(jsonb_build_array(
		jsonb_build_object('msg_id', $1::bigint, 'template_id', (select max(template_id) from pawl.templates)),
		jsonb_build_object('msg_id', $2::bigint, 'invalid', '{"error": "InvalidRequest", "message": "request_id is no UUID"}'::jsonb)))`, good, bad)
	require.Len(t, outcomes, 2)
	require.Equal(t, "invalid", outcomes[0]["outcome"])
	require.Equal(t, "created", outcomes[1]["outcome"])

	raising := k.Send("shop/one", object{"request_id": vast})
	require.Equal(t, 1, get[int](k, "select pawl.dead_letter_messages('orchestration_task_requests', array[$1::bigint], 'it raises')", raising))
	require.Equal(t, []int64{bad, raising}, list[int64](k, `select msg_id from pawl.dead_letters
		where queue = 'orchestration_task_requests' and message->>'request_id' = $1 order by 1`, vast))
}

func TestAnActorThatRepeatsItselfMakesOneTask(t *testing.T) {
	k := newKit(t)
	template := k.Template("shop/one", nil, step("a"))
	twice := object{"msg_id": k.Send("shop/one"), "template_id": template}
	require.Len(t, get[[]object](k, "select pawl.process_task_requests($1)", []object{twice, twice}), 1)
	require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.tasks"))
	gone := object{"msg_id": k.Send("shop/gone"), "template_id": template + 100}
	outcomes := get[[]object](k, "select pawl.process_task_requests($1)", []object{gone})
	require.Equal(t, "invalid", outcomes[0]["outcome"], "%v", outcomes)
	require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.dead_letters"))
}
