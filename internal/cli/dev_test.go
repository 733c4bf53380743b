package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

func TestDevRunsEverythingAndLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errs safeBuffer
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, []string{"dev", "--json"}, Streams{Out: &out, Err: &errs}) }()
	var started struct {
		URL string `json:"database_url"`
	}
	require.Eventually(t, func() bool { return json.Unmarshal([]byte(out.String()), &started) == nil }, deadline, deadline/600, errs.String())
	s := &shell{t: t, url: started.URL}
	task := decode[taskDetail](s, "submit", "shop/fulfil_order", "--wait", "--input",
		`{"order_id":"S-1","customer_id":"C-1","country":"DE","items":[{"sku":"TEA-SEN-100","quantity":2}]}`)
	require.Equal(t, "complete", task.State)
	folder := s.sql("show data_directory")
	require.DirExists(t, folder)
	stop()
	require.Equal(t, ExitOK, <-ended, errs.String())
	require.NoDirExists(t, folder)
	file, err := devFile()
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.True(t, err != nil || !strings.Contains(string(text), started.URL), "the address stays behind")
}

func TestDevSaysHowItsPostgresEnded(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), deadline)
	defer stop()
	var out, errs safeBuffer
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, []string{"dev", "--no-worker"}, Streams{Out: &out, Err: &errs}) }()
	address := regexp.MustCompile(`postgres://\S+`)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "SQL\n") || len(ended) > 0 }, deadline, deadline/600)
	s := &shell{t: t, url: address.FindString(out.String())}
	folder := s.sql("show data_directory")
	first, err := os.ReadFile(filepath.Join(folder, "postmaster.pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.SplitN(string(first), "\n", 2)[0])
	require.NoError(t, err)
	server, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, server.Kill())
	require.Equal(t, ExitFailed, <-ended)
	require.Contains(t, errs.String(), "killed")
	require.Contains(t, errs.String(), "database system is ready", "the end of its log, which is gone with its folder")
	require.Contains(t, errs.String(), "--dir keeps it")
	require.NoDirExists(t, filepath.Dir(folder))
}

func TestTheFirstDevKeepsItsAddress(t *testing.T) { // alone: it sets the environment
	first, second := pgtest.EmptyURL(t), pgtest.EmptyURL(t)
	stranger, err := url.Parse(first) // somebody else's server, at the port that was ours
	require.NoError(t, err)
	stranger.User = url.UserPassword(stranger.User.Username(), "wrong")
	t.Setenv("PAWL_CACHE_DIR", t.TempDir())
	t.Setenv("PAWL_DATABASE_URL", "")
	a := &app{}
	found := func() string {
		url, err := a.url()
		require.NoError(t, err)
		return url
	}
	forgetFirst, other, err := announceDev(t.Context(), first)
	require.NoError(t, err)
	require.Empty(t, other)
	forgetSecond, other, err := announceDev(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, first, other)
	require.Equal(t, first, found())
	forgetSecond()
	require.Equal(t, first, found())
	forgetFirst()
	_, err = a.url()
	require.ErrorContains(t, err, "no database is named")

	path, err := devFile()
	require.NoError(t, err)
	for _, stale := range []string{"postgres://127.0.0.1:1/postgres", "", "nonsense", stranger.String(), second} {
		require.NoError(t, os.WriteFile(path, []byte(stale+"\n"), 0o600))
		forget, other, err := announceDev(t.Context(), second)
		require.NoError(t, err)
		require.Empty(t, other)
		require.Equal(t, second, found())
		forget()
	}
	require.NoError(t, os.WriteFile(path, []byte("postgres://127.0.0.1:1/postgres\n"), 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, ExitUnavailable, Run(t.Context(), []string{"task", "list"}, Streams{Out: &out, Err: &errs}))
	require.Contains(t, errs.String(), "a pawl dev that was killed")
}

func TestASecondDevSaysHowItIsFound(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{Streams: Streams{Out: &out}}
	require.NoError(t, a.printDev(devRuns{url: "postgres://u:p@127.0.0.1:2/postgres", other: "postgres://u:secret@127.0.0.1:1/postgres"}))
	require.Contains(t, out.String(), "Another pawl dev of yours runs at 127.0.0.1:1:")
	require.Contains(t, out.String(), "\n  export PAWL_DATABASE_URL='postgres://u:p@127.0.0.1:2/postgres'\n")
	require.NotContains(t, out.String(), "secret")
}

// What is printed can be copied into a shell, also where pawl is not in PATH.
func TestDevPrintsThePathItWasStartedBy(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, (&app{Streams: Streams{Out: &out}}).printDev(devRuns{}))
	require.Contains(t, out.String(), "\n  "+os.Args[0]+" submit shop/fulfil_order")
	require.Equal(t, "bin/pawl", typed("bin/pawl"))
	require.Equal(t, "pawl", typed("pawl"))
	require.Equal(t, "'/a b/pawl'", typed("/a b/pawl"))
}

func TestCommandsWithADatabaseOfTheirOwnRefuseAnother(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dev", "demo", "conformance"} {
		for _, args := range [][]string{{name, "--database-url", "postgres://x/y"}, {"--database-url", "postgres://x/y", name}} {
			o := (&shell{t: t}).run(args...)
			require.Equal(t, ExitUsage, o.code, args)
			require.Contains(t, o.err, "leave --database-url out", args)
		}
		require.NotContains(t, (&shell{t: t}).ok(name, "--help"), "--database-url")
	}
}
