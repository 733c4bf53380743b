package workflow_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/workflow"
)

func TestTemplatesAreReadFromAFileSystem(t *testing.T) {
	t.Parallel()
	one := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("namespace: shop\nname: " + name + "\nsteps: [{name: run}]\n")}
	}
	files := fstest.MapFS{"b.yaml": one("b"), "a.yaml": one("a"), "more/c.yml": one("c"), "notes.txt": {Data: []byte("not a template")}}
	templates, err := workflow.ParseFS(files, "*.yaml", "more/*", "a.yaml")
	require.NoError(t, err)
	var refs []string
	for _, template := range templates {
		refs = append(refs, template.Ref())
		require.NotEmpty(t, template.Definition())
	}
	require.Equal(t, []string{"shop/a@1", "shop/b@1", "shop/c@1"}, refs)
	require.Equal(t, "more/c.yml", templates[2].File)

	files["b.yaml"] = &fstest.MapFile{Data: []byte("namespace: shop\nname: b\nstep: []\n")}
	_, err = workflow.ParseFS(files, "*")
	var bad *workflow.ParseError
	require.ErrorContains(t, err, "more")
	_, err = workflow.ParseFS(files, "*.*")
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Error(), "b.yaml:3: ")
	require.Contains(t, bad.Error(), "notes.txt:1: ")

	for _, patterns := range [][]string{nil, {"*.yaml", "*.toml"}, {"[a"}} {
		_, err = workflow.ParseFS(files, patterns...)
		require.ErrorContains(t, err, "reading templates", "%v", patterns)
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
}

func TestTaskStatesAreReadByName(t *testing.T) {
	t.Parallel()
	for _, state := range workflow.TaskStates() {
		read, err := workflow.ParseTaskState(string(state))
		require.NoError(t, err)
		require.Equal(t, state, read)
	}
	_, err := workflow.ParseTaskState("completed")
	require.EqualError(t, err, `there is no task state "completed"; there are pending, initializing, `+
		`enqueuing_steps, steps_in_process, waiting_for_retry, waiting_for_dependencies, evaluating_results, blocked_by_failures, `+
		`complete, error, cancelled, timed_out, resolved_manually`)
}
