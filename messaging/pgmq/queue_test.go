package pgmq_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

func TestQueueNamesAreCheckedBeforePGMQSeesThem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "orders_queue", "q1", strings.Repeat("a", 40)} {
		require.NoError(t, pgmq.ValidateQueueName(name), name)
	}
	for _, name := range []string{
		"", "Orders", "1st", "_x", "a-b", "a b", "a.b", `a"b`, "a'b", "a;b", "a$b", "é", "aé", "a\x00", strings.Repeat("a", 41),
	} {
		// A nil DB: nothing may reach it.
		var nameErr *pgmq.QueueNameError
		require.ErrorAs(t, pgmq.Create(t.Context(), nil, name), &nameErr, name)
		_, err := pgmq.Drop(t.Context(), nil, name)
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.Purge(t.Context(), nil, name)
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.Metrics(t.Context(), nil, name)
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.Send(t.Context(), nil, name, pgmq.Outgoing{Body: json.RawMessage(`1`)})
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.SendBatch(t.Context(), nil, name, []pgmq.Outgoing{{Body: json.RawMessage(`1`)}})
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.Read(t.Context(), nil, pgmq.ReadConfig{Queue: name})
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.ReadWithPoll(t.Context(), nil, pgmq.ReadConfig{Queue: name})
		require.ErrorAs(t, err, &nameErr)
		_, _, err = pgmq.Pop(t.Context(), nil, name)
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.SetVT(t.Context(), nil, pgmq.VisibilityChange{Queue: name, IDs: []int64{1}})
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.Delete(t.Context(), nil, name, 1)
		require.ErrorAs(t, err, &nameErr)
		_, err = pgmq.Archive(t.Context(), nil, name, 1)
		require.ErrorAs(t, err, &nameErr)
	}
}

func TestQueuesAreCreatedListedAndDropped(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), testPool(t)
	require.NoError(t, pgmq.Create(ctx, db, "orders_test"))
	require.NoError(t, pgmq.Create(ctx, db, "orders_test"), "a second create does nothing")
	queues, err := pgmq.List(ctx, db)
	require.NoError(t, err)
	var found *pgmq.Queue
	for _, q := range queues {
		if q.Name == "orders_test" {
			found = &q
		}
	}
	require.NotNil(t, found)
	require.False(t, found.Partitioned)
	require.False(t, found.Unlogged)
	require.WithinDuration(t, time.Now(), found.CreatedAt, time.Hour)

	existed, err := pgmq.Drop(ctx, db, "orders_test")
	require.NoError(t, err)
	require.True(t, existed)
	existed, err = pgmq.Drop(ctx, db, "orders_test")
	require.NoError(t, err)
	require.False(t, existed)
}

func TestMetricsAndPurgeCountMessages(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), testPool(t)
	require.NoError(t, pgmq.Create(ctx, db, "orders_test"))

	m, err := pgmq.Metrics(ctx, db, "orders_test")
	require.NoError(t, err)
	require.Equal(t, "orders_test", m.Queue)
	require.Zero(t, m.Length)
	require.Nil(t, m.Oldest)

	_, err = pgmq.SendBatch(ctx, db, "orders_test", bodies(`1`, `2`))
	require.NoError(t, err)
	_, err = pgmq.Send(ctx, db, "orders_test", pgmq.Outgoing{Body: json.RawMessage(`3`), Delay: time.Hour})
	require.NoError(t, err)
	m, err = pgmq.Metrics(ctx, db, "orders_test")
	require.NoError(t, err)
	require.EqualValues(t, 3, m.Length)
	require.EqualValues(t, 2, m.Visible)
	require.EqualValues(t, 3, m.Total)
	require.NotNil(t, m.Newest)
	require.NotNil(t, m.Oldest)

	count, err := pgmq.Purge(ctx, db, "orders_test")
	require.NoError(t, err)
	require.EqualValues(t, 3, count)
}

func TestAMissingQueueIsSaid(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), testPool(t)
	_, sendErr := pgmq.Send(ctx, db, "no_such", pgmq.Outgoing{Body: json.RawMessage(`1`)})
	_, batchErr := pgmq.SendBatch(ctx, db, "no_such", bodies(`1`))
	_, readErr := pgmq.Read(ctx, db, pgmq.ReadConfig{Queue: "no_such"})
	_, pollErr := pgmq.ReadWithPoll(ctx, db, pgmq.ReadConfig{Queue: "no_such"})
	_, _, popErr := pgmq.Pop(ctx, db, "no_such")
	_, vtErr := pgmq.SetVT(ctx, db, pgmq.VisibilityChange{Queue: "no_such", IDs: []int64{1}})
	_, deleteErr := pgmq.Delete(ctx, db, "no_such", 1)
	_, archiveErr := pgmq.Archive(ctx, db, "no_such", 1)
	_, purgeErr := pgmq.Purge(ctx, db, "no_such")
	_, metricsErr := pgmq.Metrics(ctx, db, "no_such")
	for i, err := range []error{
		sendErr, batchErr, readErr, pollErr, popErr, vtErr, deleteErr, archiveErr, purgeErr, metricsErr,
	} {
		require.ErrorIs(t, err, pgmq.ErrQueueNotFound, i)
		require.ErrorContains(t, err, `"no_such"`)
	}
}

func TestADatabaseWithoutPGMQIsSaid(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), testPool(t)
	_, err := db.Exec(ctx, "drop schema pgmq cascade")
	require.NoError(t, err)
	_, err = pgmq.List(ctx, db)
	require.ErrorIs(t, err, pgmq.ErrNotInstalled)
	require.ErrorIs(t, pgmq.Create(ctx, db, "orders_test"), pgmq.ErrNotInstalled)
}

func TestCallsArePartOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), testPool(t)
	undo := errors.New("undo")
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		require.NoError(t, pgmq.Create(ctx, tx, "orders_test"))
		_, err := pgmq.Send(ctx, tx, "orders_test", pgmq.Outgoing{Body: json.RawMessage(`1`)})
		require.NoError(t, err)
		return undo
	})
	require.ErrorIs(t, err, undo)
	_, err = pgmq.Read(ctx, db, pgmq.ReadConfig{Queue: "orders_test"})
	require.ErrorIs(t, err, pgmq.ErrQueueNotFound)
}

func bodies(texts ...string) []pgmq.Outgoing {
	messages := make([]pgmq.Outgoing, len(texts))
	for i, text := range texts {
		messages[i].Body = json.RawMessage(text)
	}
	return messages
}
