package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

func TestTasksAreFoundByTheirReference(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	k.apply(strings.Replace(free, `version: "1"`, `version: "2"`, 1))
	k.apply(strings.Replace(free, `namespace: shop`, `namespace: other`, 1))
	var ids []uuid.UUID
	for _, template := range []string{"shop/free@1", "shop/free", "other/free"} {
		id, err := k.client.Submit(k.ctx, client.Request{Template: template, Input: sum{1, 2}})
		require.NoError(t, err)
		ids = append(ids, id)
	}
	second, err := k.client.Get(k.ctx, ids[1])
	require.NoError(t, err)
	require.Equal(t, "shop/free@2", second.Ref())
	for _, c := range []struct {
		filter client.Filter
		want   []uuid.UUID
	}{
		{client.Filter{Template: "free"}, []uuid.UUID{ids[2], ids[1], ids[0]}},
		{client.Filter{Template: "shop/free"}, []uuid.UUID{ids[1], ids[0]}},
		{client.Filter{Template: "shop/free", Namespace: "shop", Version: "1"}, ids[:1]},
		{client.Filter{Template: second.Ref()}, ids[1:2]},
		{client.Filter{Template: "free@1", States: []workflow.TaskState{second.State}}, []uuid.UUID{ids[2], ids[0]}},
	} {
		list, err := k.client.List(k.ctx, c.filter)
		require.NoError(t, err)
		var found []uuid.UUID
		for _, task := range list {
			found = append(found, task.ID)
		}
		require.Equal(t, c.want, found, "%+v", c.filter)
	}
	for says, filter := range map[string]client.Filter{
		`no task state "completed"; there are pending, `: {States: []workflow.TaskState{workflow.TaskError, "completed"}},
		`is not of namespace "other"`:                    {Template: "shop/free", Namespace: "other"},
		`and version "2"`:                                {Template: "shop/free@1", Version: "2"},
	} {
		_, err := k.client.List(k.ctx, filter)
		require.ErrorContains(t, err, says)
	}
}

func TestAResultIsDecodedOrSaysWhyThereIsNone(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	k.work(nil)
	id, err := k.client.Submit(k.ctx, client.Request{Template: "shop/add", Input: sum{20, 1}})
	require.NoError(t, err)
	n, err := client.Result[int](k.ctx, k.client, id)
	require.NoError(t, err)
	require.Equal(t, 42, n)
	_, err = client.Result[[]string](k.ctx, k.client, id)
	require.ErrorContains(t, err, "reading result of task "+id.String())

	_, err = k.client.ConfigureQueue(k.ctx, "shop_queue", client.QueueSettings{}, anna)
	require.NoError(t, err)
	id, err = k.client.Submit(k.ctx, client.Request{Handler: "refuse", Queue: "shop_queue", Input: sum{}})
	require.NoError(t, err)
	_, err = client.Result[int](k.ctx, k.client, id)
	var failed *client.TaskFailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, []any{id, workflow.TaskError, "failed", "run", "fraud"}, []any{failed.TaskID, failed.State, failed.Status, failed.Step, failed.Cause.Type})

	_, err = k.client.ResolveTask(k.ctx, id, 7, anna)
	require.NoError(t, err)
	n, err = client.Result[int](k.ctx, k.client, id)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	_, err = client.Result[int](k.ctx, k.client, mustSubmit(k, client.Request{Template: "shop/none"}))
	var invalid *client.InvalidRequestError
	require.ErrorAs(t, err, &invalid)
}

func mustSubmit(k *kit, request client.Request) uuid.UUID {
	k.Helper()
	id, err := k.client.Submit(k.ctx, request)
	require.NoError(k, err)
	return id
}

func TestRefusedCommandsAreTold(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	first := mustSubmit(k, client.Request{Template: "shop/keyed", Key: "k", Input: sum{1, 1}})
	require.Eventually(t, func() bool { _, err := k.client.Get(k.ctx, first); return err == nil }, patience, 10*time.Millisecond)
	_, err := k.client.RetryFrom(k.ctx, first, "add", anna)
	require.ErrorIs(t, err, client.ErrNotPossible)
	_, err = k.client.Cancel(k.ctx, first, anna)
	require.NoError(t, err)
	_, err = k.client.SubmitAndDecide(k.ctx, client.Request{Template: "shop/keyed", Key: "k", Input: sum{1, 1}})
	require.NoError(t, err)
	_, err = k.client.Retry(k.ctx, first, anna)
	require.ErrorIs(t, err, client.ErrKeyTaken)
	require.NotErrorIs(t, err, client.ErrNotPossible)
	_, err = k.client.Retry(k.ctx, messaging.NewRequestID(), anna)
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = k.client.ResolveTask(k.ctx, first, nil, anna)
	require.NoError(t, err)
	resolved, err := k.client.Get(k.ctx, first)
	require.NoError(t, err)
	require.Nil(t, resolved.Result)
	n, err := client.Result[int](k.ctx, k.client, first)
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = k.client.CompleteStep(k.ctx, client.StepID{TaskID: first, Step: "add"}, []byte("1"), anna)
	require.ErrorContains(t, err, "json.RawMessage")
}

func TestTemplatesThatWereNotParsedAreRefused(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	parsed, err := workflow.ParseTemplates("test.yaml", []byte(free))
	require.NoError(t, err)
	_, err = k.client.ApplyTemplates(k.ctx, parsed[0], nil)
	require.ErrorContains(t, err, "template 2 of 2: it is nil")
	_, err = k.client.ApplyTemplates(k.ctx, &workflow.Template{Namespace: "shop", Name: "add", Version: "1"})
	require.ErrorContains(t, err, "shop/add@1")
	require.ErrorContains(t, err, "workflow.ParseTemplates")
	applied, err := k.client.ApplyTemplates(k.ctx, parsed...)
	require.NoError(t, err)
	require.True(t, applied[0].Created, "nothing was applied before")
	_, err = k.client.ApplyTemplates(k.ctx)
	require.NoError(t, err)
}

func TestTheListenerMayGoItsOwnWay(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	own := k.pool.Config().ConnString()
	separator := "?"
	if strings.Contains(own, "?") {
		separator = "&"
	}
	own += separator + "application_name=ear&pool_max_conns=3"
	c, err := client.New(client.Config{Pool: k.pool, ListenerURL: own, Log: quiet})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancel(k.ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = c.Wait(ctx, messaging.NewRequestID()) }()
	require.Eventually(t, func() bool {
		var listens bool
		err := k.pool.QueryRow(k.ctx, `select exists (select from pg_stat_activity where datname = current_database() and application_name = 'ear')`).Scan(&listens)
		return err == nil && listens
	}, patience, 10*time.Millisecond)
	cancel()
	<-ended
	_, err = client.New(client.Config{Pool: k.pool, ListenerURL: own, NoListen: true})
	require.ErrorContains(t, err, "ListenerURL or NoListen, not both")
	_, err = client.New(client.Config{Pool: k.pool, ListenerURL: "postgres://:x"})
	require.ErrorContains(t, err, "reading ListenerURL")
}
