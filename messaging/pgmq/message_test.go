package pgmq_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

func queueOf(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	db := testPool(t)
	require.NoError(t, pgmq.Create(t.Context(), db, "orders_test"))
	return db, "orders_test"
}

func ids(messages []pgmq.Message) []int64 {
	out := make([]int64, len(messages))
	for i, m := range messages {
		out[i] = m.ID
	}
	return out
}

func TestAMessageIsSentReadAndDeleted(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	ctx := t.Context()
	id, err := pgmq.Send(ctx, db, queue, pgmq.Outgoing{
		Body: json.RawMessage(`{"order": 7, "name": "Žofie 🦊"}`), Headers: json.RawMessage(`{"traceparent": "x"}`),
	})
	require.NoError(t, err)

	messages, err := pgmq.Read(ctx, db, pgmq.ReadConfig{Queue: queue, Visibility: time.Hour, Limit: 10})
	require.NoError(t, err)
	require.Len(t, messages, 1)
	m := messages[0]
	require.Equal(t, id, m.ID)
	require.Equal(t, 1, m.ReadCount)
	require.JSONEq(t, `{"order": 7, "name": "Žofie 🦊"}`, string(m.Body))
	require.JSONEq(t, `{"traceparent": "x"}`, string(m.Headers))
	require.True(t, m.VisibleAt.After(m.EnqueuedAt.Add(59*time.Minute)))

	messages, err = pgmq.Read(ctx, db, pgmq.ReadConfig{Queue: queue, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, messages, "it is invisible")

	deleted, err := pgmq.Delete(ctx, db, queue, id, id+1)
	require.NoError(t, err)
	require.Equal(t, []int64{id}, deleted, "only what was there")
}

func TestABatchKeepsItsOrder(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	ctx := t.Context()
	batch := bodies(`"a"`, `"b"`, `null`, `[4]`)
	batch[1].Headers = json.RawMessage(`{"n": 2}`)
	sent, err := pgmq.SendBatch(ctx, db, queue, batch)
	require.NoError(t, err)
	require.Len(t, sent, 4)
	require.IsIncreasing(t, sent)

	messages, err := pgmq.Read(ctx, db, pgmq.ReadConfig{Queue: queue, Visibility: time.Hour, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, sent, ids(messages))
	for i, m := range messages {
		require.JSONEq(t, string(batch[i].Body), string(m.Body))
	}
	require.Nil(t, messages[0].Headers)
	require.JSONEq(t, `{"n": 2}`, string(messages[1].Headers))

	none, err := pgmq.SendBatch(ctx, db, queue, nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestABatchHasOneDelay(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	batch := bodies(`1`, `2`)
	batch[1].Delay = time.Second
	_, err := pgmq.SendBatch(t.Context(), db, queue, batch)
	require.ErrorContains(t, err, "message 2 of 2")
	batch[0].Delay, batch[1].Delay = time.Hour, time.Hour
	_, err = pgmq.SendBatch(t.Context(), db, queue, batch)
	require.NoError(t, err)
	messages, err := pgmq.Read(t.Context(), db, pgmq.ReadConfig{Queue: queue, Limit: 2})
	require.NoError(t, err)
	require.Empty(t, messages)
}

func TestTheLongestVisibilityHidesAMessage(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	id, err := pgmq.Send(t.Context(), db, queue, pgmq.Outgoing{Body: json.RawMessage(`{}`)})
	require.NoError(t, err)
	for _, longest := range []time.Duration{math.MaxInt64, 1 << 62} {
		messages, err := pgmq.Read(t.Context(), db, pgmq.ReadConfig{Queue: queue, Visibility: longest})
		require.NoError(t, err)
		require.Equal(t, []int64{id}, ids(messages))
		require.WithinDuration(t, time.Now().Add(math.MaxInt32*time.Second), messages[0].VisibleAt, time.Hour)
		_, err = pgmq.SetVT(t.Context(), db, pgmq.VisibilityChange{Queue: queue, IDs: []int64{id}})
		require.NoError(t, err)
	}
}

func TestVisibilityIsMovedWhoeverHoldsTheMessage(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	ctx := t.Context()
	sent, err := pgmq.SendBatch(ctx, db, queue, bodies(`1`, `2`, `3`))
	require.NoError(t, err)
	read := pgmq.ReadConfig{Queue: queue, Visibility: time.Hour, Limit: 10}
	_, err = pgmq.Read(ctx, db, read)
	require.NoError(t, err)

	changed, err := pgmq.SetVT(ctx, db, pgmq.VisibilityChange{Queue: queue, IDs: []int64{sent[2], 999, sent[0]}})
	require.NoError(t, err)
	require.ElementsMatch(t, []int64{sent[0], sent[2]}, changed)
	messages, err := pgmq.Read(ctx, db, read)
	require.NoError(t, err)
	require.Equal(t, []int64{sent[0], sent[2]}, ids(messages))
	require.Equal(t, 2, messages[0].ReadCount)
}

func TestArchiveMovesAndPopTakes(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	ctx := t.Context()
	sent, err := pgmq.SendBatch(ctx, db, queue, bodies(`1`, `2`))
	require.NoError(t, err)
	archived, err := pgmq.Archive(ctx, db, queue, sent[0])
	require.NoError(t, err)
	require.Equal(t, sent[:1], archived)
	var kept int
	require.NoError(t, db.QueryRow(ctx, "select count(*) from pgmq.a_orders_test").Scan(&kept))
	require.Equal(t, 1, kept)

	// Never read before: its last_read_at is null.
	m, ok, err := pgmq.Pop(ctx, db, queue)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, sent[1], m.ID)
	_, ok, err = pgmq.Pop(ctx, db, queue)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestReadWithPollReturnsWhatComesMeanwhile(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	ctx := t.Context()
	got := make(chan []pgmq.Message, 1)
	go func() {
		messages, err := pgmq.ReadWithPoll(ctx, db, pgmq.ReadConfig{
			Queue: queue, Visibility: time.Second, Limit: 5, PollFor: soon, PollEvery: 10 * time.Millisecond,
		})
		if err != nil {
			messages = nil
		}
		got <- messages
	}()
	require.Eventually(t, func() bool {
		var waiting bool
		err := db.QueryRow(ctx, `select exists (select from pg_stat_activity
			where datname = current_database() and query like '%pgmq.read_with_poll%' and pid <> pg_backend_pid())`).Scan(&waiting)
		return err == nil && waiting
	}, soon, 10*time.Millisecond)
	id, err := pgmq.Send(ctx, db, queue, pgmq.Outgoing{Body: json.RawMessage(`1`)})
	require.NoError(t, err)
	require.Equal(t, []int64{id}, ids(<-got))
}

func TestMistakesInArgumentsAreSaid(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, err := pgmq.Read(ctx, nil, pgmq.ReadConfig{Queue: "q", Limit: -1})
	require.ErrorContains(t, err, "limit -1")
	_, err = pgmq.Read(ctx, nil, pgmq.ReadConfig{Queue: "q", Visibility: -1})
	require.ErrorContains(t, err, "visibility")
	_, err = pgmq.ReadWithPoll(ctx, nil, pgmq.ReadConfig{Queue: "q", PollEvery: time.Microsecond})
	require.ErrorContains(t, err, "polling interval")
	_, err = pgmq.ReadWithPoll(ctx, nil, pgmq.ReadConfig{Queue: "q", PollFor: -1})
	require.ErrorContains(t, err, "polling time")
	_, err = pgmq.SetVT(ctx, nil, pgmq.VisibilityChange{Queue: "q"})
	require.ErrorContains(t, err, "no message ids")
	_, err = pgmq.SetVT(ctx, nil, pgmq.VisibilityChange{Queue: "q", IDs: []int64{1}, Visibility: -1})
	require.ErrorContains(t, err, "negative")
	_, err = pgmq.Delete(ctx, nil, "q")
	require.ErrorContains(t, err, "no message ids")
	_, err = pgmq.Send(ctx, nil, "q", pgmq.Outgoing{Body: json.RawMessage(`1`), Delay: -1})
	require.ErrorContains(t, err, "negative")
	_, err = pgmq.Send(ctx, nil, "q", pgmq.Outgoing{Body: json.RawMessage(`1`), Headers: json.RawMessage(`[1]`)})
	require.ErrorContains(t, err, "headers")
}

func TestWhatJSONBRefusesIsRefusedBeforeSending(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `{`, `"\u0000"`, `"\ud800"`, `"\udc00"`, "\"\xff\"", `{"a":1}x`} {
		var jsonErr *pgmq.JSONError
		_, err := pgmq.Send(t.Context(), nil, "q", pgmq.Outgoing{Body: json.RawMessage(body)})
		require.ErrorAs(t, err, &jsonErr, body)
		_, err = pgmq.SendBatch(t.Context(), nil, "q", bodies(`1`, body))
		require.ErrorAs(t, err, &jsonErr, body)
		require.ErrorContains(t, err, "message 2 of 2")
	}
}

func TestEveryWayToSpeakToTheServerWorks(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		ctx := t.Context()
		config := db.Config().ConnConfig.Copy()
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(ctx, config)
		require.NoError(t, err)
		batch := bodies(`{"a": "it's \\ \"1\""}`, `2`)
		batch[0].Headers = json.RawMessage(`{"h": 1}`)
		sent, err := pgmq.SendBatch(ctx, conn, queue, batch)
		require.NoError(t, err, mode)
		one, err := pgmq.Send(ctx, conn, queue, batch[0])
		require.NoError(t, err, mode)
		messages, err := pgmq.Read(ctx, conn, pgmq.ReadConfig{Queue: queue, Limit: 5, Visibility: time.Hour})
		require.NoError(t, err, mode)
		require.Equal(t, append(sent, one), ids(messages), mode)
		require.JSONEq(t, string(batch[0].Body), string(messages[0].Body))
		_, err = pgmq.SetVT(ctx, conn, pgmq.VisibilityChange{Queue: queue, IDs: sent, Visibility: time.Minute})
		require.NoError(t, err, mode)
		_, err = pgmq.Metrics(ctx, conn, queue)
		require.NoError(t, err, mode)
		_, err = pgmq.Archive(ctx, conn, queue, one)
		require.NoError(t, err, mode)
		_, err = pgmq.Delete(ctx, conn, queue, sent...)
		require.NoError(t, err, mode)
		require.NoError(t, conn.Close(ctx))
	}
}
