package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/config"
)

func nothing(string) string { return "" }

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pawl.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestDefaultsAreThoseOfTheTags(t *testing.T) {
	t.Parallel()
	var o config.Orchestrator
	require.NoError(t, config.Load(&o, config.Sources{Env: nothing}))
	require.Equal(t, "127.0.0.1:8080", o.Listen)
	require.Equal(t, 200, o.Batch)
	require.Equal(t, time.Hour, o.SweepEvery)
	require.False(t, o.Park)
	var w config.Worker
	require.NoError(t, config.Load(&w, config.Sources{Env: nothing}))
	require.Equal(t, "off", w.Listen)
	require.Empty(t, w.Queues)
}

func TestMisspeltVariablesAreNamed(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{"PAWL_LISTN": "PAWL_LISTEN", "PAWL_QUEUE": "PAWL_QUEUES"}, config.Misspelt([]string{
		"PATH=/bin", "PAWL_LISTN=off", "PAWL_LISTEN=off", "PAWL_QUEUE=a", "PAWL_DATABASE_URL=x", "PAWL_CONFIG=x", "PAWL_WORKER_TOKEN=x",
		"PAWL_CACHE_DIR=x", "PAWL_PORT=tcp://10.0.0.1:80", "PAWL_SERVICE_HOST=10.0.0.1", "PAWL_SEED=1", "LISTN=x", "PAWL_"}))
}

func TestFlagsBeatVariablesBeatTheFile(t *testing.T) {
	t.Parallel()
	path := write(t, "database_url = 'file'\nlog_level = 'debug'\n[orchestrator]\nbatch = 5\ngrace = '1m30s'\nlisten = 'file'\n"+
		"[worker]\nqueues = ['a']\n[retention]\ninterval = '2h'\n[queues.a]\npaused = true\n")
	env := map[string]string{"PAWL_DATABASE_URL": "variable", "PAWL_LISTEN": "variable", "PAWL_CONFIG": path}
	var o config.Orchestrator
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.Bind(flags, &o)
	require.NoError(t, flags.Parse([]string{"--listen", "flag", "--retention-interval=3h", "--park"}))
	require.NoError(t, config.Load(&o, config.Sources{Flags: flags, Env: func(name string) string { return env[name] }}))
	require.Equal(t, "variable", o.DatabaseURL)
	require.Equal(t, "debug", o.LogLevel)
	require.Equal(t, "flag", o.Listen)
	require.Equal(t, 5, o.Batch)
	require.Equal(t, 90*time.Second, o.Grace)
	require.Equal(t, 3*time.Hour, o.SweepEvery)
	require.True(t, o.Park)
	require.Nil(t, flags.Lookup("worker-token"), "a secret is no flag")

	var w config.Worker
	require.NoError(t, config.Load(&w, config.Sources{File: path, Env: func(name string) string {
		return map[string]string{"PAWL_QUEUES": "b, c,"}[name]
	}}))
	require.Equal(t, []string{"b", "c"}, w.Queues)
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("pawl.toml", []byte(`
databse_url = "x"
queues = 3
[orchestrator]
batch = 0
grace = "soon"
idle_poll = "0s"
listen = 8080
[templates."shop/fulfil_order@1"]
retention = 7
[templates."shop/fulfil_order"]
stuck_after = { waiting_for_retry = "x" }
`))
	for _, want := range []string{
		`databse_url: is unknown; did you mean "database_url"?`,
		`queues: write a section for each, as in [queues.NAME]`,
		`orchestrator.batch: write a number of 1 or more`,
		`orchestrator.grace: "soon" is not a duration`,
		`orchestrator.idle_poll: write a duration of more than 0`,
		`orchestrator.listen: write a text in quotes`,
		`templates.shop/fulfil_order@1: write [templates."namespace/name"], without a version`,
		`templates.shop/fulfil_order@1.retention: write a duration in quotes`,
		`templates.shop/fulfil_order.stuck_after.waiting_for_retry: "x" is not a duration`,
	} {
		require.ErrorContains(t, err, "pawl.toml: "+want)
	}
	_, err = config.Parse("pawl.toml", []byte(`[queues.emails]
rate_limt = "5/sec"
burst = 2
max_concurrency = -1
paused = "yes"
[queues.orchestration_x]
rate_limit = "0/sec"
[queues.later]
rate_limit = "5/week"
`))
	for _, want := range []string{
		`queues.emails.rate_limt: is unknown; did you mean "rate_limit"?`,
		`queues.emails.burst: says nothing without rate_limit`,
		`queues.emails.max_concurrency: write a whole number of 1 or more`,
		`queues.emails.paused: write true or false`,
		`queues.orchestration_x: queue name "orchestration_x" begins with orchestration_`,
		`queues.orchestration_x.rate_limit: write a number of 1 or more per sec`,
		`queues.later.rate_limit: write a number of 1 or more per sec`,
	} {
		require.ErrorContains(t, err, "pawl.toml: "+want)
	}
	_, err = config.Parse("pawl.toml", []byte("[quees.q]\nrate_limit = '5/sec'\n[wrker]\nlisten = 'off'\n[other]\na = 1\n"))
	for _, want := range []string{
		`[quees]: is unknown; did you mean "queues"? Sections: orchestrator, worker, engine`,
		`[wrker]: is unknown; did you mean "worker"?`,
		`[other]: is unknown. Sections: `,
	} {
		require.ErrorContains(t, err, "pawl.toml: "+want)
	}
	_, err = config.Parse("pawl.toml", []byte("a = 1\nb = = 2\n"))
	require.ErrorContains(t, err, "pawl.toml:2: ")
}

func TestBadVariablesAndFlagsAreNamed(t *testing.T) {
	t.Parallel()
	var o config.Orchestrator
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.Bind(flags, &o)
	require.NoError(t, flags.Parse([]string{"--grace", "5"}))
	err := config.Load(&o, config.Sources{Flags: flags, Env: func(name string) string {
		return map[string]string{"PAWL_BATCH": "many", "PAWL_PARK": "perhaps"}[name]
	}})
	require.ErrorContains(t, err, `--grace: "5" is not a duration`)
	require.ErrorContains(t, err, "PAWL_BATCH: write a whole number")
	require.ErrorContains(t, err, "PAWL_PARK: write true or false")
	zero := func(name string) string { return map[string]string{"PAWL_GRACE": "0s", "PAWL_CONNECT_WAIT": "0"}[name] }
	err = config.Load(&o, config.Sources{Env: zero})
	require.ErrorContains(t, err, "PAWL_GRACE: write a duration of more than 0")
	require.NotContains(t, err.Error(), "CONNECT_WAIT", "0 is to try once")
	require.Zero(t, o.ConnectWait)
	require.ErrorContains(t, config.Load(&o, config.Sources{File: "/nowhere/pawl.toml", Env: nothing}), "/nowhere/pawl.toml")
}

func TestSectionsBecomeWhatTheDatabaseTakes(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("pawl.toml", []byte(`
[engine]
staged = true
[retention]
dead_letters = "60d"
absorbed = "0"
interval = "5m"
[queues.emails]
retention = "7d"
rate_limit = "100/sec"
burst = 20
[queues.slow]
max_concurrency = 3
paused = false
[templates."shop/fulfil_order"]
retention = "0"
stuck_after = { waiting_for_retry = "1h" }
`))
	require.NoError(t, err)
	asJSON := func(value any) string {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return string(text)
	}
	require.JSONEq(t, `{"retention": "7d", "rate_limit": "100/sec", "burst": 20, "max_concurrency": null}`, asJSON(f.Queues["emails"].Settings()))
	require.JSONEq(t, `{"retention": null, "rate_limit": null, "burst": null, "max_concurrency": 3, "paused": false}`, asJSON(f.Queues["slow"].Settings()))
	require.JSONEq(t, `{"retention": "0", "stuck_after": {"waiting_for_retry": "1h"}}`, asJSON(f.Templates["shop/fulfil_order"].Settings()))
	require.JSONEq(t, `{"staged": true, "dead_letter_retention": "60d", "absorbed_retention": "0"}`, asJSON(f.Engine()))
}

func TestEverySettingIsExplained(t *testing.T) {
	t.Parallel()
	table := config.Table()
	for _, target := range []any{&config.Orchestrator{}, &config.Worker{}, &config.Engine{}} {
		for _, s := range config.Settings(target) {
			require.NotEmpty(t, s.Doc, s.Key)
			require.Contains(t, table, "| `"+s.Key+"` |")
		}
	}
	require.NotContains(t, strings.ToLower(table), "| --worker-token")
}
