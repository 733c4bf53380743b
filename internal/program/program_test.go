package program

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/sql"
)

// What was asked for goes to where a pipe finds it.
func TestHelpAndVersionAreOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings any
		level    func(settings any) *string
	}{
		"orchestrator": {new(config.Orchestrator), func(s any) *string { return &s.(*config.Orchestrator).LogLevel }},
		"worker":       {new(config.Worker), func(s any) *string { return &s.(*config.Worker).LogLevel }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(args ...string) string {
				var out bytes.Buffer
				p := Program{Name: name, Usage: "Usage: " + name + "\n", Settings: c.settings, LogLevel: c.level(c.settings), Out: &out}
				p.Work = func(context.Context, *slog.Logger) error { require.Fail(t, "it works"); return nil }
				require.Zero(t, p.Run(t.Context(), args))
				return out.String()
			}
			help := run("--help")
			require.Contains(t, help, "Usage: "+name+"\n")
			require.Contains(t, help, "--database-url")
			require.Contains(t, help, "--version")
			require.Equal(t, help, run("-h"))
			require.Equal(t, fmt.Sprintf("%s %s (%s, SQL functions %d)\n", name, Version(), runtime.Version(), sql.FunctionsVersion), run("--version"))
		})
	}
}

func TestAMistakeIsNoOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var settings config.Worker
	p := Program{Name: "worker", Usage: "Usage\n", Settings: &settings, LogLevel: &settings.LogLevel, Out: &out}
	require.Equal(t, 2, p.Run(t.Context(), []string{"--nonsense"}))
	require.Empty(t, out.String())

	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	config.Bind(flags, &settings)
	require.Equal(t, "; did you mean --listen?", meant(flags, flags.Parse([]string{"--listne", "off"})))
	require.Empty(t, meant(flags, flags.Parse([]string{"--nonsense"})))
}

func TestURLsThatCannotBeReadAreMisuse(t *testing.T) {
	t.Parallel()
	const good = "postgres://user@host/database"
	for _, urls := range [][2]string{{"nonsense", ""}, {"postgres://user:secret@:x/", "off"}, {good, "nonsense"}} {
		err := CheckURLs(urls[0], urls[1])
		require.ErrorContains(t, err, "it is no Postgres URL; it looks like postgres://")
		require.ErrorAs(t, err, new(misuse))
		require.NotContains(t, err.Error(), "secret")
	}
	require.ErrorContains(t, CheckURLs(good, "nonsense"), "reading listener_url")
	require.NoError(t, CheckURLs(good, "off"))
	require.NoError(t, CheckURLs(good, ""))
}
