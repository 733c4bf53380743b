package invoices_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/examples/invoices"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/workflow"
)

const (
	patience = time.Minute
	often    = 20 * time.Millisecond
	// childURL makes the test's binary a worker on that database, which acts and never ends.
	childURL = "PAWL_INVOICES_CHILD"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		actForever(url)
		return
	}
	os.Exit(m.Run())
}

// actForever is a worker whose first action does not end; the test kills it.
func actForever(url string) {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		panic(err)
	}
	billing := invoices.Billing{DB: pool, Compute: func(ctx context.Context, invoice int64) (int64, error) {
		if _, err := pool.Exec(ctx, `insert into actions (invoice_id, who) values ($1, 'child')`, invoice); err != nil {
			return 0, err
		}
		select {}
	}}
	w, err := worker.New(worker.Config{DatabaseURL: url, Queues: []worker.Queue{{Name: "billing_queue"}}, Log: quiet})
	if err != nil {
		panic(err)
	}
	billing.Register(w)
	panic(w.Run(ctx))
}

// office is a billing module on a database of the test's own, with an orchestrator.
type office struct {
	*testing.T
	url     string
	db      *pgxpool.Pool
	client  *client.Client
	invoice int64
}

// open makes an office. change edits the templates.
func open(t *testing.T, change func(templates []byte) []byte) *office {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	_, err = db.Exec(t.Context(), invoices.Schema+`; create table actions (invoice_id bigint, who text)`)
	require.NoError(t, err)
	c, err := client.New(client.Config{Pool: db, Log: quiet})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	text := invoices.Templates
	if change != nil {
		text = change(text)
	}
	templates, err := workflow.ParseTemplates("billing.yaml", text)
	require.NoError(t, err)
	_, err = c.ApplyTemplates(t.Context(), templates...)
	require.NoError(t, err)
	o, err := orchestrator.Start(t.Context(), orchestrator.Config{DatabaseURL: url, Logger: quiet, Settings: actors.Settings{IdlePoll: 100 * time.Millisecond}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Stop(context.Background())) })
	k := &office{T: t, url: url, db: db, client: c}
	k.one(&k.invoice, `insert into invoices (number, total_cents) values ('2024-17', 9900) returning invoice_id`)
	return k
}

// employ starts a worker of the module.
func (k *office) employ(billing *invoices.Billing) {
	k.Helper()
	billing.DB = k.db
	w, err := worker.New(worker.Config{Pool: k.db, Queues: []worker.Queue{{Name: "billing_queue", Concurrency: 8}}, Log: quiet,
		Poll: 100 * time.Millisecond, ProvenPoll: 100 * time.Millisecond, Grace: -1})
	require.NoError(k, err)
	billing.Register(w)
	require.NoError(k, w.Start(k.Context()))
	k.Cleanup(func() { require.NoError(k, w.Stop(context.Background())) })
}

// one reads one value.
func (k *office) one(into any, sql string, args ...any) {
	k.Helper()
	require.NoError(k, k.db.QueryRow(k.Context(), sql, args...).Scan(into), sql)
}

func (k *office) count(sql string, args ...any) int {
	k.Helper()
	var n int
	k.one(&n, "select count(*) from "+sql, args...)
	return n
}

func (k *office) exec(sql string, args ...any) {
	k.Helper()
	_, err := k.db.Exec(k.Context(), sql, args...)
	require.NoError(k, err, sql)
}

func (k *office) status() string {
	k.Helper()
	var status string
	k.one(&status, "select status from invoices where invoice_id = $1", k.invoice)
	return status
}

// submit asks for actions on the invoice.
func (k *office) submit(template string, times int) []uuid.UUID {
	k.Helper()
	requests := make([]client.Request, times)
	for i := range requests {
		requests[i] = client.Request{Template: "billing/" + template, Input: invoices.Action{InvoiceID: k.invoice, AmountCents: 9900}}
		if template == "regenerate_invoice" {
			requests[i].Input = map[string]int64{"invoice_id": k.invoice}
		}
	}
	ids, err := k.client.SubmitMany(k.Context(), requests)
	require.NoError(k, err)
	return ids
}

// ends waits for tasks and counts how they ended.
func (k *office) ends(ids []uuid.UUID) map[string]int {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), patience)
	defer cancel()
	ends := map[string]int{}
	for _, id := range ids {
		task, err := k.client.Wait(ctx, id)
		var failed *client.TaskFailedError
		if err != nil {
			require.ErrorAs(k, err, &failed)
		}
		ends[string(task.State)]++
	}
	return ends
}

func (k *office) until(why string, condition func() bool) {
	k.Helper()
	require.Eventually(k, condition, patience, often, why)
}

func (k *office) sweep() invoices.Swept {
	k.Helper()
	swept, err := invoices.Sweep(k.Context(), k.db)
	require.NoError(k, err)
	return swept
}

// later moves the engine's clock ahead.
func (k *office) later(by string) {
	k.Helper()
	k.exec(`create or replace function pawl.now() returns timestamptz language sql volatile as
		'select clock_timestamp() + interval ''` + by + `'''`)
}

// child starts a worker in a process of its own.
func (k *office) child() *exec.Cmd {
	k.Helper()
	binary, err := os.Executable()
	require.NoError(k, err)
	command := exec.Command(binary)
	command.Env = append(os.Environ(), childURL+"="+k.url)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	require.NoError(k, command.Start())
	k.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if k.Failed() {
			k.Log(output.String())
		}
	})
	return command
}
