package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

// exec gives the database a command.
func (s *shell) exec(ctx context.Context, statement string) {
	s.t.Helper()
	pool, err := pgxpool.New(ctx, s.url)
	require.NoError(s.t, err)
	defer pool.Close()
	_, err = pool.Exec(ctx, statement)
	require.NoError(s.t, err)
}

// as is the same database for a role of the test's own with these memberships.
func (s *shell) as(memberOf ...string) *shell {
	s.t.Helper()
	name := fmt.Sprintf("pawl_test_%x", rand.Uint64())
	s.exec(s.t.Context(), "create role "+name+" login password '"+name+"' in role "+strings.Join(memberOf, ", "))
	s.t.Cleanup(func() { s.exec(context.Background(), "drop owned by "+name+"; drop role "+name) })
	location, err := url.Parse(s.url)
	require.NoError(s.t, err)
	location.User = url.UserPassword(name, name)
	return &shell{t: s.t, url: location.String()}
}

func TestTheOperatorsRoleIsEnoughForEveryCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.sql("select pawl.install_roles()::text")
	s.engine()
	id := s.submitDiamond(`{"n": 1, "fail": true}`)
	require.Equal(t, ExitTaskFailed, s.run("task", "wait", id).code)
	s.sql(`select pgmq.send('orchestration_task_requests', '{"template": "no/such", "input": {}}')::text`)
	operator := s.as("pawl_operator")
	for _, command := range [][]string{
		{"task", "list"}, {"task", "show", id}, {"task", "explain", id}, {"task", "history", id},
		{"queue", "list"}, {"queue", "list", "--all"}, {"dead", "list"}, {"stuck"}, {"doctor"}, {"watch", "--once"},
		{"template", "list"}, {"template", "show", "test/diamond"}, {"config", "show"},
		{"queue", "pause", "test_queue", "--reason", "r"}, {"queue", "resume", "test_queue", "--reason", "r"},
		{"queue", "configure", "test_queue", "--max-concurrency", "5", "--reason", "r"},
		{"step", "complete", id, "right", "--result", "{}", "--reason", "r"}, {"task", "wait", id},
	} {
		o := operator.run(command...)
		require.Equal(t, ExitOK, o.code, "pawl %v: %s%s", command, o.out, o.err)
	}
	operator.apply(strings.ReplaceAll(diamond, "name: diamond", "name: diamond_too"))
	refused := operator.run("enqueue", "test.echo", "--namespace", "test")
	require.Equal(t, ExitFailed, refused.code)
	require.Contains(t, refused.err, "Grant pawl_producer to this role")
	nobody := s.as("pawl_producer")
	require.Contains(t, nobody.run("task", "list").err, "grant pawl_operator to this role")
	producer := s.as("pawl_producer", "pawl_operator")
	producer.ok("submit", "test/diamond", "--input", `{"n": 2}`, "--wait")
}

func TestMigratingWithoutTheRightsSaysWhichAreMissing(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, url: pgtest.EmptyURL(t)}
	o := s.as("pg_monitor").run("migrate")
	require.Equal(t, ExitFailed, o.code)
	require.Contains(t, o.err, "grant create on database")
}
