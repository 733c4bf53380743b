package messaging_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
)

func TestGoodBodiesAreReadAndWrittenBack(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, text := range k.good {
			body, err := k.decode([]byte(text))
			require.NoError(t, err, text)
			written, err := json.Marshal(body)
			require.NoError(t, err)
			again, err := k.decode(written)
			require.NoError(t, err, "%s written as %s", text, written)
			require.Equal(t, body, again)
		}
	}
}

func TestBadBodiesAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for text, want := range k.bad {
			_, err := k.decode([]byte(text))
			var bodyErr *messaging.BodyError
			require.ErrorAs(t, err, &bodyErr, text)
			require.ErrorContains(t, err, want, text)
		}
		for _, text := range noBodies {
			_, err := k.decode([]byte(text))
			var bodyErr *messaging.BodyError
			require.ErrorAs(t, err, &bodyErr, "%s: %s", k.schema, text)
		}
	}
}

func TestANewerVersionIsLeftForOthers(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, text := range []string{`{"v":2,"brand_new":true}`, `{"v":99999999999999999999999}`} {
			_, err := k.decode([]byte(text))
			var newer *messaging.NewerVersionError
			require.ErrorAs(t, err, &newer, text)
			require.Greater(t, newer.Version, messaging.Version)
		}
	}
}

func TestErrorsDoNotQuoteValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"template":"a/b","input":1,"request_id":"hunter2"}`,
		`{"template":"a/b","input":1,"run_at":"hunter2"}`,
		`{"template":"a/b","input":1,"tags":{"hunter2":1}}`,
		`{"template":"hunter2","input":1}`,
		`{"template":["hunter2"],"input":1}`,
		`{"template":"a/b","input":1,"on_duplicate":"hunter2"}`,
		`"hunter2"`,
	} {
		_, err := messaging.DecodeTaskRequest([]byte(text))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestATaskRequestIsReadWhole(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("01890f3e-7b1a-7c3d-9e4f-5a6b7c8d9e0f")
	got, err := messaging.DecodeTaskRequest([]byte(`{"request_id":"` + id.String() + `","template":"shop/fulfil_order@2",
		"input":{"n":1.10},"key":"k","on_duplicate":"attach","requester":"cron","run_at":"2026-01-31T12:00:00Z",
		"reply_to":"replies","correlation_id":"c","tags":{"a":"b"}}`))
	require.NoError(t, err)
	require.Equal(t, messaging.TaskRequest{
		V: 1, RequestID: id, Template: "shop/fulfil_order@2", Input: raw(`{"n":1.10}`), Key: "k",
		OnDuplicate: messaging.Attach, Requester: "cron", RunAt: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		ReplyTo: "replies", CorrelationID: "c", Tags: map[string]string{"a": "b"},
	}, got)
}

func TestAMissingRetryableMeansYes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{``: true, `,"retryable":true`: true, `,"retryable":false`: false} {
		result, err := messaging.DecodeStepResult([]byte(`{` + ofStep + `,"status":"failed","error":{"type":"t","message":"m"` + text + `}}`))
		require.NoError(t, err)
		require.Equal(t, want, result.Error.Retryable)
	}
}

func TestOverlongKeysAndNamespacesAreRefused(t *testing.T) {
	t.Parallel()
	r := messaging.TaskRequest{Template: "a/b", Input: raw(`{}`), Key: strings.Repeat("é", 127)}
	require.NoError(t, r.Validate())
	r.Key += "éé"
	require.ErrorContains(t, r.Validate(), "258 bytes")

	r = messaging.TaskRequest{Handler: "h", Namespace: strings.Repeat("n", 34)}
	require.NoError(t, r.Validate())
	r.Namespace += "n"
	require.ErrorContains(t, r.Validate(), "name one in queue")
	r.Queue = "q"
	require.NoError(t, r.Validate())
}

func TestTemplateReferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]messaging.TemplateRef{
		"shop/fulfil_order":       {Namespace: "shop", Name: "fulfil_order"},
		"shop/fulfil_order@1.0.0": {Namespace: "shop", Name: "fulfil_order", Version: "1.0.0"},
	} {
		ref, err := messaging.ParseTemplateRef(text)
		require.NoError(t, err)
		require.Equal(t, want, ref)
		require.Equal(t, text, ref.String())
	}
	for _, text := range []string{"", "/", "a", "a/", "/b", "a/b/c", "a/b@", "a/b@1@2", "a b/c", "a/b@ 1", "A/b", strings.Repeat("a", 64) + "/b"} {
		_, err := messaging.ParseTemplateRef(text)
		require.Error(t, err, text)
	}
}

func TestStepQueuesAreNotTheEngines(t *testing.T) {
	t.Parallel()
	require.NoError(t, messaging.ValidateQueueName(messaging.TaskRequests))
	require.Error(t, messaging.ValidateQueueName("No"))
	require.NoError(t, messaging.ValidateStepQueueName(messaging.NamespaceQueue("shop")))
	require.Error(t, messaging.ValidateStepQueueName(messaging.StepResults))
	require.Error(t, messaging.ValidateStepQueueName("No"))
}

func TestRequestIDsAreOrdered(t *testing.T) {
	t.Parallel()
	last := messaging.NewRequestID().String()
	for range 100 {
		id := messaging.NewRequestID()
		require.EqualValues(t, 7, id.Version())
		require.Greater(t, id.String(), last)
		last = id.String()
	}
}

func FuzzDecode(f *testing.F) {
	for n, k := range kinds {
		for _, text := range k.good {
			f.Add(n, []byte(text))
		}
		for text := range k.bad {
			f.Add(n, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, n int, text []byte) {
		if n < 0 || n >= len(kinds) {
			return
		}
		body, err := kinds[n].decode(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(body)
		require.NoError(t, err)
		again, err := kinds[n].decode(written)
		require.NoError(t, err, "%s", written)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}
