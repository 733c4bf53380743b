package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemplatesAreAppliedOnceAndShown(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	require.Contains(t, s.ok("template", "list"), "No templates yet")
	o := s.feed(diamond, "template", "apply", "-")
	require.Equal(t, ExitOK, o.code, o.err)
	require.Contains(t, o.out, "test/diamond@1 applied; new queues: test_queue\n")
	o = s.feed(diamond, "template", "apply", "-")
	require.Contains(t, o.out, "is there already")
	o = s.feed(strings.Replace(diamond, "max_attempts: 1", "max_attempts: 2", 1), "template", "apply", "-")
	require.Equal(t, ExitRefused, o.code)
	require.Contains(t, o.err, "give the new content a new version")

	list := decode[[]templateRow](s, "template", "list")
	require.Len(t, list, 1)
	require.Equal(t, "test/diamond@1", list[0].Template)
	require.Equal(t, 4, list[0].Steps)
	require.Regexp(t, `last +test.echo +test_queue +1 +left, right`, s.ok("template", "show", "test/diamond"))
	require.NotEmpty(t, decode[templateRow](s, "template", "show", "test/diamond@1").Definition)
	require.Equal(t, ExitNotFound, s.run("template", "show", "test/none").code)
	near := s.feed(strings.NewReplacer("name: diamond", "name: other", "handler: test.echo}", "handler: test.echo, queue: test_quee}").Replace(diamond),
		"template", "apply", "-")
	require.Contains(t, near.out, "test/other@1 applied; new queues: test_quee (did you mean test_queue?)")
	for namespace, want := range map[string]string{"demo": "demo_queue\n", "tset": "tset_queue (did you mean test_queue?)\n"} {
		applied := s.feed(strings.ReplaceAll(diamond, "namespace: test", "namespace: "+namespace), "template", "apply", "-")
		require.Contains(t, applied.out, "/diamond@1 applied; new queues: "+want)
	}
}

func TestBadTemplatesChangeNothingAndNameTheirLines(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	good, bad := filepath.Join(t.TempDir(), "good.yaml"), filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(good, []byte(diamond), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("namespace: test\nname: x\nstep: []\n"), 0o600))
	o := s.run("template", "apply", good, bad)
	require.Equal(t, ExitUsage, o.code)
	require.Contains(t, o.err, "bad.yaml:3")
	require.Empty(t, decode[[]templateRow](s, "template", "list"))
	require.Equal(t, ExitUsage, s.run("template", "apply", "/none/x.yaml").code)
}

// The queues are read for a hint, and a role that may not read them applies templates all the same.
func TestApplyingNeedsNoSightOfTheQueues(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.sql("select pawl.install_roles()::text")
	operator := s.as("pawl_operator")
	s.exec(t.Context(), "revoke select on pawl.queues from pawl_operator")
	o := operator.feed(diamond, "template", "apply", "-")
	require.Equal(t, ExitOK, o.code, o.err)
	require.Contains(t, o.out, "new queues: test_queue")
}
