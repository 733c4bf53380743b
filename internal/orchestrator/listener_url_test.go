package orchestrator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

// What a URL says of pools is for pools: the server would refuse it as a parameter that it does not know.
func TestTheListenerTakesTheURLOfAPool(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	connect, err := connectListener(url + separator + "pool_max_conns=4&pool_max_conn_lifetime=1h&pool_health_check_period=30s")
	require.NoError(t, err)
	conn, err := connect(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var name string
	require.NoError(t, conn.QueryRow(t.Context(), `select current_setting('application_name')`).Scan(&name))
	require.Equal(t, "pawl orchestrator", name)
}
