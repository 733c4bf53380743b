package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

var anna = client.By{Actor: "anna", Reason: "the customer called"}

func ptr[T any](value T) *T { return &value }

func TestOperatorsCommandsReachTheEngine(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	gate := make(chan struct{})
	k.work(gate)
	id, err := k.client.Submit(k.ctx, client.Request{Template: "shop/add", Input: sum{1, 2}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := k.client.Get(k.ctx, id); return err == nil }, patience, 10*time.Millisecond)

	_, err = k.client.Cancel(k.ctx, id, client.By{Actor: "anna"})
	var refused *client.CommandError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "PW023", refused.Code)
	_, err = k.client.Cancel(k.ctx, messaging.NewRequestID(), anna)
	require.ErrorIs(t, err, client.ErrNotFound)

	outcome, err := k.client.Cancel(k.ctx, id, anna)
	require.NoError(t, err)
	require.Equal(t, "cancelled", outcome.Outcome)
	outcome, err = k.client.Cancel(k.ctx, id, anna)
	require.NoError(t, err)
	require.Equal(t, "unchanged", outcome.Outcome)
	task, err := k.client.Wait(k.ctx, id)
	require.NoError(t, err)
	require.Equal(t, "cancelled", task.Status)
	history, err := k.client.History(k.ctx, id)
	require.NoError(t, err)
	last := history[len(history)-1]
	require.Equal(t, []string{"cancelled", "anna", "the customer called"}, []string{last.To, last.Actor, last.Reason})

	outcome, err = k.client.Retry(k.ctx, id, anna)
	require.NoError(t, err)
	require.Equal(t, "running", outcome.Status)
	why, err := k.client.Explain(k.ctx, id)
	require.NoError(t, err)
	require.Contains(t, string(why), "add")
	outcome, err = k.client.CompleteStep(k.ctx, client.StepID{TaskID: id, Step: "add"}, 10, anna)
	require.NoError(t, err)
	require.Equal(t, "completed", outcome.Outcome)
	close(gate)
	task, err = k.client.Wait(k.ctx, id)
	require.NoError(t, err)
	require.JSONEq(t, `20`, string(task.Result))
	_, err = k.client.ResolveTask(k.ctx, id, nil, anna)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "PW021", refused.Code)
	require.ErrorIs(t, err, client.ErrNotPossible)
}

func TestStepsAreRetriedAndResolved(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	k.work(nil)
	failed, err := k.client.SubmitAndWait(k.ctx, client.Request{Handler: "refuse", Queue: "shop_queue", Input: sum{}})
	require.NoError(t, err)
	_, err = k.client.RetryStep(k.ctx, client.StepID{TaskID: failed.ID, Step: "run"}, anna)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		steps, err := k.client.Steps(k.ctx, failed.ID)
		return err == nil && steps[0].Attempt == 2 && steps[0].State == "error"
	}, patience, 10*time.Millisecond)
	_, err = k.client.ResolveStep(k.ctx, client.StepID{TaskID: failed.ID, Step: "nope"}, anna)
	require.ErrorIs(t, err, client.ErrNotFound)
	outcome, err := k.client.ResolveTask(k.ctx, failed.ID, "by hand", anna)
	require.NoError(t, err)
	require.Equal(t, workflow.TaskResolvedManually, outcome.State)

	done, err := k.client.SubmitAndWait(k.ctx, client.Request{Template: "shop/keyed", Key: "k", Input: sum{1, 1}})
	require.NoError(t, err)
	_, err = k.client.RetryFrom(k.ctx, done.ID, "add", anna)
	require.Error(t, err, "no task leaves complete")
}

func TestQueuesAreConfiguredAndListed(t *testing.T) {
	k := newKit(t)
	outcome, err := k.client.ConfigureQueue(k.ctx, "mail_queue", client.QueueSettings{RateLimit: ptr("100/sec"), Burst: ptr(5), MaxConcurrency: ptr(2)}, anna)
	require.NoError(t, err)
	require.Equal(t, "configured", outcome.Outcome)
	_, err = k.client.PauseQueue(k.ctx, "mail_queue", anna)
	require.NoError(t, err)
	id, err := k.client.Submit(k.ctx, client.Request{Handler: "mail", Queue: "mail_queue"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return mail(k).Held == 1 }, patience, 10*time.Millisecond)
	require.Equal(t, client.Queue{Name: "mail_queue", Paused: true, Held: 1, RateLimit: 100, RatePeriod: time.Second, Burst: 5, MaxConcurrency: 2}, mail(k))
	_, err = k.client.ResumeQueue(k.ctx, "mail_queue", anna)
	require.NoError(t, err)
	_, err = k.client.ConfigureQueue(k.ctx, "mail_queue", client.QueueSettings{RateLimit: ptr(""), Burst: ptr(0), MaxConcurrency: ptr(0)}, anna)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return mail(k).Visible == 1 }, patience, 10*time.Millisecond)
	require.Zero(t, mail(k).RateLimit)
	_, err = k.client.Get(k.ctx, id)
	require.NoError(t, err)
	_, err = k.client.ConfigureQueue(k.ctx, "mail_queue", client.QueueSettings{RateLimit: ptr("many")}, anna)
	var refused *client.CommandError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "PW024", refused.Code)
}

func TestRefusalsHaveSentinels(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	changed, err := workflow.ParseTemplates("test.yaml", []byte(strings.Replace(free, "handler: ", "handler: other_", 1)))
	require.NoError(t, err)
	_, err = k.client.ApplyTemplates(k.ctx, changed...)
	require.ErrorIs(t, err, client.ErrTemplateChanged)
	var refused *client.CommandError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "PW011", refused.Code)
	_, err = k.client.PauseQueue(k.ctx, "nobodys_queue", anna)
	require.ErrorIs(t, err, client.ErrUnknownQueue)
	_, err = k.client.ConfigureQueue(k.ctx, messaging.TaskRequests, client.QueueSettings{Burst: ptr(1)}, anna)
	require.ErrorIs(t, err, client.ErrUnknownQueue)
	require.NotErrorIs(t, err, client.ErrTemplateChanged)
}

func mail(k *kit) client.Queue {
	queues, err := k.client.Queues(k.ctx)
	require.NoError(k, err)
	require.Equal(k, "mail_queue", queues[0].Name)
	require.True(k, queues[len(queues)-1].Engine)
	mail := queues[0]
	mail.Oldest = 0
	return mail
}

func TestDeadLettersAreRedrivenAndDropped(t *testing.T) {
	k := newKit(t)
	_, err := k.client.SubmitAndWait(k.ctx, client.Request{Template: "shop/add", Input: sum{1, 2}})
	require.Error(t, err)
	k.apply(templates)
	k.work(nil)
	outcome, err := k.client.RedriveDeadLetters(k.ctx, client.DeadLetters{Filter: map[string]any{"queue": messaging.TaskRequests}}, anna)
	require.NoError(t, err)
	require.Contains(t, string(outcome.Details), `"redriven": 1`)
	require.Eventually(t, func() bool {
		list, err := k.client.List(k.ctx, client.Filter{States: []workflow.TaskState{workflow.TaskComplete}})
		return err == nil && len(list) == 1
	}, patience, 10*time.Millisecond)
	_, err = k.client.SubmitAndWait(k.ctx, client.Request{Template: "shop/nothing"})
	require.Error(t, err)
	_, err = k.client.DropDeadLetters(k.ctx, client.DeadLetters{Spread: time.Minute}, anna)
	require.ErrorContains(t, err, "Spread")
	outcome, err = k.client.DropDeadLetters(k.ctx, client.DeadLetters{}, anna)
	require.NoError(t, err)
	require.Contains(t, string(outcome.Details), `"dropped": 1`)
}
