package sql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestProcessorsBeatAndStop(t *testing.T) {
	k := newKit(t)
	id := uuid.New()
	clock := k.freeze()
	beat := "select pawl.beat_processor($1, 'orchestrator', 'box', 7, '1.0')"
	k.Exec(beat, id)
	clock(time.Minute)
	k.Exec(beat, id)
	require.Equal(t, []bool{true}, list[bool](k, "select heartbeat_at - started_at = interval '1 minute' and stopped_at is null from pawl.processors"))
	k.Exec("select pawl.stop_processor($1)", id)
	k.Exec("select pawl.stop_processor($1)", uuid.New())
	require.Equal(t, []bool{true}, list[bool](k, "select stopped_at = heartbeat_at from pawl.processors"))
}
