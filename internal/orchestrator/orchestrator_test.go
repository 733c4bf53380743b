package orchestrator_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

const patience = 60 * time.Second

var quiet = slog.New(slog.DiscardHandler)

func start(t *testing.T, c orchestrator.Config) *orchestrator.Orchestrator {
	t.Helper()
	c.Logger = quiet
	o, err := orchestrator.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Stop(context.Background())) })
	return o
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func exec(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	_, err = conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func TestItServesHealthReadinessMetricsAndWorkers(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	o := start(t, orchestrator.Config{DatabaseURL: url, Listen: "127.0.0.1:0", WorkerToken: "token"})
	at := "http://" + o.Addr()
	status, body := get(t, at+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status": "ok"}`, body)
	status, body = get(t, at+"/readyz")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status": "ready"}`, body)
	require.Eventually(t, func() bool {
		_, body = get(t, at+"/metrics")
		return strings.Contains(body, "pawl_listener_proven 1")
	}, patience, 50*time.Millisecond)
	for _, line := range []string{`pawl_database_up 1`, `pawl_repairs_total{cause="engine"} 0`,
		`pawl_queue_messages{queue="orchestration_step_results"} 0`, `pawl_tasks{state="complete"} 0`} {
		require.Contains(t, body, line)
	}
	status, _ = get(t, at+"/v1/worker/claim")
	require.NotEqual(t, http.StatusNotFound, status)
	status, _ = get(t, at+"/other")
	require.Equal(t, http.StatusNotFound, status)
}

func TestWithoutATokenTheWorkerAPISaysThatItIsOff(t *testing.T) {
	t.Parallel()
	o := start(t, orchestrator.Config{DatabaseURL: pgtest.URL(t), Listen: "127.0.0.1:0"})
	status, body := get(t, "http://"+o.Addr()+"/v1/worker/claim")
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, `"Disabled"`)
}

func TestStopIsFinalAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	o := start(t, orchestrator.Config{DatabaseURL: url})
	require.Empty(t, o.Addr())
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	count := func(sql string) (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), sql, o.ID()).Scan(&n))
		return n
	}
	require.Eventually(t, func() bool {
		return count(`select count(*) from pawl.processors where processor_id = $1 and stopped_at is null`) == 1
	}, patience, 20*time.Millisecond)
	require.NoError(t, o.Stop(t.Context()))
	require.NoError(t, o.Stop(t.Context()))
	require.Equal(t, 1, count(`select count(*) from pawl.processors where processor_id = $1 and stopped_at is not null`))
	require.Eventually(t, func() bool { // the server notices a closed connection a little later
		return count(`select count(*) from pg_stat_activity where datname = current_database()
			and application_name = 'pawl orchestrator' and $1::uuid is not null`) == 0
	}, patience, 20*time.Millisecond)
}

func TestItPollsWithoutAListener(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	start(t, orchestrator.Config{DatabaseURL: url, ListenerURL: "off", Settings: actors.Settings{IdlePoll: 20 * time.Millisecond}})
	exec(t, url, `select pgmq.send('orchestration_task_requests', '{"handler": "x", "input": {}}')`)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	require.Eventually(t, func() bool {
		var n int
		return conn.QueryRow(t.Context(), `select count(*) from pawl.tasks`).Scan(&n) == nil && n == 1
	}, patience, 20*time.Millisecond)
}

func TestItRefusesWhatItCannotWorkOn(t *testing.T) {
	t.Parallel()
	refused := func(c orchestrator.Config, want string) {
		t.Helper()
		c.Logger = quiet
		_, err := orchestrator.Start(t.Context(), c)
		require.ErrorContains(t, err, want)
	}
	refused(orchestrator.Config{}, "PAWL_DATABASE_URL")
	refused(orchestrator.Config{DatabaseURL: pgtest.EmptyURL(t)}, "pawl migrate")
	url := pgtest.URL(t)
	refused(orchestrator.Config{DatabaseURL: url, Listen: "nowhere:99999"}, "--listen")
	var log bytes.Buffer
	_, err := orchestrator.Start(t.Context(), orchestrator.Config{DatabaseURL: url, Listen: "foo", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.ErrorContains(t, err, "listening on foo")
	require.NotContains(t, log.String(), "stopped", "what did not start")
	exec(t, url, `do $$ begin execute format('alter database %I set default_transaction_isolation = ''repeatable read''', current_database()); end $$`)
	refused(orchestrator.Config{DatabaseURL: url}, "read committed")
}

func TestARegistryServesOneOrchestratorAfterAnother(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	c := orchestrator.Config{DatabaseURL: pgtest.URL(t), Registry: registry, Logger: quiet}
	failing := c
	failing.Listen = "nowhere:99999"
	_, err := orchestrator.Start(t.Context(), failing)
	require.ErrorContains(t, err, "--listen")
	for range 2 {
		o, err := orchestrator.Start(t.Context(), c)
		require.NoError(t, err)
		found, err := registry.Gather()
		require.NoError(t, err)
		require.NotEmpty(t, found)
		require.NoError(t, o.Stop(t.Context()))
		found, err = registry.Gather()
		require.NoError(t, err)
		require.Empty(t, found, "of a stopped one there is nothing to tell")
	}
}

func TestItRefusesClaimsThatNobodyWouldRelease(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	exec(t, url, `create table invoices (id bigint primary key, state text, revision bigint not null default 0)`)
	exec(t, url, `select pawl.register_entity('invoice', '{"table": "invoices", "key": "id", "status": "state", "version": "revision",
		"states": ["sent", "refunding", "refunded"], "module": "billing"}', 'ann', 'new')`)
	exec(t, url, `select pawl.beat_janitor('billing')`)
	exec(t, url, `select pawl.register_template($1)`, `{"namespace": "shop", "name": "refund", "version": "1", "steps": [
		{"no": 0, "name": "pay", "handler": "shop.pay", "queue": "shop_queue", "needs": [], "claim": {"default": {
		 "entity": "invoice", "id": "$.input.invoice", "from": "sent", "into": "refunding", "revert_to": "sent",
		 "on_success": "refunded", "on_busy": "fail"}}}]}`)
	exec(t, url, `delete from pawl.janitors`)
	_, err := orchestrator.Start(t.Context(), orchestrator.Config{DatabaseURL: url, Logger: quiet})
	require.ErrorContains(t, err, "template shop/refund@1, step pay, state refunding, module billing: module has no janitor")
	require.ErrorContains(t, err, "--park")
	start(t, orchestrator.Config{DatabaseURL: url, Park: true, Settings: actors.Settings{IdlePoll: 20 * time.Millisecond}})
	exec(t, url, `select pgmq.send('orchestration_task_requests', '{"template": "shop/refund", "input": {"invoice": "7"}}')`)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	require.Eventually(t, func() bool {
		var n int
		return conn.QueryRow(t.Context(), `select count(*) from pgmq.q_orchestration_task_requests
			where vt > clock_timestamp() + interval '40 s'`).Scan(&n) == nil && n == 1
	}, patience, 20*time.Millisecond)
}

func TestAListenersURLThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	_, err := orchestrator.Start(t.Context(), orchestrator.Config{DatabaseURL: pgtest.URL(t), ListenerURL: "postgres://:secret@[no", Logger: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "reading the listener's URL")
	require.NotContains(t, err.Error(), "secret")
}
