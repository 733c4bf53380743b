package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/conformance"
)

// asWorker has the test's binary be a worker that works on one step at a time, as the kit's: careless ones report a result
// once, whatever comes of it.
const asWorker = "PAWL_CONFORMANCE_TEST_WORKER"

func TestMain(m *testing.M) {
	if how := os.Getenv(asWorker); how != "" {
		fmt.Fprintln(os.Stderr, work(context.Background(), how == "careless"))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestAWorkerThatDropsResultsWhoseReportFailedIsFound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(program))
	for how, patience := range map[string]time.Duration{"careful": time.Minute, "careless": 20 * time.Second} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			report, err := conformance.Run(t.Context(), conformance.Config{Command: asWorker + "=" + how + " exec " + program, Patience: patience,
				Only: []string{"survives the loss of its connections, and loses no result"}})
			require.NoError(t, err)
			require.Len(t, report.Results, 1)
			if how == "careful" {
				require.Equal(t, conformance.Passes, report.Results[0].Outcome, "%s\n%s", report.Results[0].Detail, report.Log)
				return
			}
			require.Equal(t, conformance.Fails, report.Results[0].Outcome)
			require.Contains(t, report.Results[0].Detail, "the result is not reported again")
		})
	}
}

type claimed struct {
	MsgID   int64           `json:"msg_id"`
	ReadCt  int             `json:"read_ct"`
	Handler string          `json:"handler"`
	Input   json.RawMessage `json:"input"`
}

func work(ctx context.Context, careless bool) error {
	pool, err := pgxpool.New(ctx, os.Getenv("PAWL_DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	for {
		var text []byte
		var steps []claimed
		if pool.QueryRow(ctx, `select pawl.claim_steps($1, 1, 'test')`, os.Getenv("PAWL_QUEUE")).Scan(&text) == nil {
			if err := json.Unmarshal(text, &steps); err != nil {
				return err
			}
		}
		pause := 20 * time.Millisecond
		for _, step := range steps {
			result := step.Input
			if step.Handler == "sleep" {
				result = json.RawMessage(strings.Replace(string(step.Input), "ms", "slept", 1))
				var nap struct{ MS int }
				if err := json.Unmarshal(step.Input, &nap); err != nil {
					return err
				}
				<-time.After(time.Duration(nap.MS) * time.Millisecond)
			}
			for {
				_, err := pool.Exec(ctx, `select pawl.report_steps($1, jsonb_build_array(jsonb_build_object('msg_id', $2::bigint, 'read_ct', $3::int,
					'status', 'complete', 'result', $4::text::jsonb)), 'test')`, os.Getenv("PAWL_QUEUE"), step.MsgID, step.ReadCt, string(result))
				if err == nil || careless {
					break
				}
				<-time.After(pause)
			}
		}
		if len(steps) == 0 {
			<-time.After(pause)
		}
	}
}
