package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

func TestMigrateBringsAnEmptyDatabaseAndIsIdempotent(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, url: pgtest.EmptyURL(t)}
	before := s.run("task", "list")
	require.Equal(t, ExitUnavailable, before.code)
	require.Equal(t, 1, strings.Count(before.err, "pawl migrate"), before.err)
	require.Equal(t, ExitUnavailable, s.run("migrate", "--check").code)
	require.Contains(t, s.ok("migrate"), "applied 0001_schema.sql")
	require.Contains(t, s.ok("migrate"), "nothing to do")
	s.ok("migrate", "--check")
	require.Contains(t, s.ok("task", "list"), "No such tasks.")
}

func TestNoDatabaseSaysHowToGetOne(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, url: "postgres://postgres@127.0.0.1:1/none"}
	o := s.run("task", "list")
	require.Equal(t, ExitUnavailable, o.code)
	require.Contains(t, o.err, "pawl dev")
	require.Contains(t, o.err, "PAWL_DATABASE_URL")
	require.Contains(t, o.err, "is the server running?")
	s.url = "postgres://user:secret@:x/"
	o = s.run("task", "list")
	require.Equal(t, ExitUsage, o.code)
	require.NotContains(t, o.err, "secret")
}

func TestAServerThatRefusesTheConnectionIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*url.URL)
		says   string
	}{
		{func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wrong") }, "The password is wrong"},
		{func(u *url.URL) { u.Path = "/nodb" }, "createdb nodb"},
		{func(u *url.URL) { u.RawQuery = "sslmode=require" }, "sslmode"},
	} {
		location, err := url.Parse(pgtest.URL(t))
		require.NoError(t, err)
		c.change(location)
		o := (&shell{t: t, url: location.String()}).run("task", "list")
		require.Equal(t, ExitUnavailable, o.code, o.err)
		require.Contains(t, o.err, c.says)
		require.NotContains(t, o.err, "is the server running?")
	}
}

// silent is the address of a server that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	server, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // the kernel takes connections that nobody accepts
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return "postgres://postgres@" + server.Addr().String() + "/none?sslmode=disable"
}

func TestADatabaseThatSaysNothingIsNoDatabase(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, url: silent(t) + "&connect_timeout=1"}
	o := s.run("task", "list")
	require.Equal(t, ExitUnavailable, o.code, o.err)
	require.Contains(t, o.err, "pawl dev")
	require.NotContains(t, o.err, "--timeout")
	s.url = silent(t)
	o = s.run("task", "wait", "0190aaaa-0000-7000-8000-000000000001", "--timeout", "200ms")
	require.Equal(t, ExitTimeout, o.code, o.err)
	require.Contains(t, o.err, "--timeout")
}

func TestErrorsAreObjectsWithJSON(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	o := s.run("task", "show", "0190aaaa", "--json")
	require.Equal(t, ExitNotFound, o.code)
	var e struct {
		Error    string `json:"error"`
		Message  string `json:"message"`
		ExitCode int    `json:"exit_code"`
		Hint     string `json:"hint"`
	}
	require.NoError(t, json.Unmarshal([]byte(o.err), &e))
	require.Equal(t, ExitNotFound, e.ExitCode)
	require.Equal(t, "NotFound", e.Error)
	require.NotEmpty(t, e.Message)
	require.NotEmpty(t, e.Hint)
}

func TestUnknownCommandsAndFlagsAreUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"tsak"}, {"task", "list", "--stat", "x"}, {"task", "show"}, {"version", "extra"}} {
		var out, errs bytes.Buffer
		require.Equal(t, ExitUsage, Run(context.Background(), args, Streams{Out: &out, Err: &errs}), args)
		require.Contains(t, errs.String(), "pawl --help", args)
	}
}

func TestWhatCannotBeReadIsAnObjectWithJSONToo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"task", "list", "--bogus", "--json"}, {"--json", "task", "list", "--bogus"}, {"nosuch", "--json"}} {
		o := (&shell{t: t}).run(args...)
		require.Equal(t, ExitUsage, o.code, args)
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(o.err), &e), "%v: %s", args, o.err)
		require.Equal(t, "Usage", e["error"])
	}
	require.NotContains(t, (&shell{t: t}).run("nosuch", "--", "--json").err, "{")
}

// Every command explains itself, with an example that uses flags it has.
func TestHelpTeaches(t *testing.T) {
	t.Parallel()
	a := &app{}
	walkCommands(a.root(), func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" {
			return
		}
		require.NotEmpty(t, c.Short, c.CommandPath())
		if c.HasSubCommands() {
			return
		}
		require.NotEmpty(t, c.Example, c.CommandPath())
		for _, line := range strings.Split(c.Example, "\n") {
			require.Regexp(t, `^  (pawl|cat) `, line, c.CommandPath())
		}
		require.NotNil(t, c.RunE, c.CommandPath())
	})
}

func walkCommands(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		walkCommands(sub, visit)
	}
}

func TestVersionPrints(t *testing.T) {
	t.Parallel()
	s := &shell{t: t}
	require.Regexp(t, `^pawl .* SQL functions \d+`, s.ok("version"))
	require.NotEmpty(t, decode[versionOutput](s, "version").Go)
}
