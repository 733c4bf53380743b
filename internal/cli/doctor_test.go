package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/doctor"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

func TestDoctorReportsAndExitsByWhatItFinds(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	ask := func(args ...string) (int, string) {
		var out, problems bytes.Buffer
		code := Run(t.Context(), append([]string{"doctor", "--database-url", url}, args...), Streams{Out: &out, Err: &problems})
		return code, out.String()
	}
	code, text := ask("--at-rest")
	require.Equal(t, ExitOK, code, text)
	require.Contains(t, text, "all hold")

	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "alter table pawl.steps disable trigger guard_update")
	require.NoError(t, err)
	code, text = ask("--json")
	require.Equal(t, ExitFailed, code, text)
	var report doctor.Report
	require.NoError(t, json.Unmarshal([]byte(text), &report))
	require.Equal(t, "H14", report.Violations[0].ID)
}
