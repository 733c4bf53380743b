package actors

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/store"
)

// A batch has requests of a template whose schema is kept and of one whose schema is not, when more are kept than may be.
func TestInputIsCheckedWhenTheKeptSchemasAreForgotten(t *testing.T) {
	t.Parallel()
	db := pgtest.Tx(t)
	for _, name := range []string{"kept", "new"} {
		_, err := db.Exec(t.Context(), "select pawl.register_template($1)", fmt.Sprintf(`{"namespace": "check", "name": %q,
			"version": "1", "input_schema": {"type": "object"}, "steps": [
			{"no": 0, "name": "only", "handler": "check.only", "queue": "check_queue", "needs": []}]}`, name))
		require.NoError(t, err)
	}
	known := &schemas{}
	refused := func(templates ...string) (names []string) {
		t.Helper()
		var batch []store.Message
		for i, template := range templates {
			body := fmt.Sprintf(`{"template": "check/%s", "input": "no object"}`, template)
			batch = append(batch, store.Message{ID: int64(i + 1), Size: len(body), Body: []byte(body)})
		}
		decisions, waiting, err := checkRequests(t.Context(), db, known, batch)
		require.NoError(t, err)
		require.Empty(t, waiting)
		for i, d := range decisions {
			if d.Invalid != nil && d.Invalid.Error == "InvalidInput" {
				names = append(names, templates[i])
			}
		}
		return names
	}
	require.Equal(t, []string{"kept"}, refused("kept"))
	for n := range maxSchemas + 1 {
		known.byID[-1-n] = checker{} // other templates'
	}
	require.Equal(t, []string{"kept", "new", "kept"}, refused("kept", "new", "kept"))
	require.Len(t, known.byID, 2, "the others were forgotten")
}

func TestRequestOfATemplateThatIsGoneIsNotAccepted(t *testing.T) {
	t.Parallel()
	checks := []requestCheck{{decision: store.Decision{MessageID: 1, TemplateID: 4711}}}
	checks[0].request.Template = "check/gone"
	require.ErrorContains(t, (&schemas{}).check(t.Context(), pgtest.Tx(t), checks), "template 4711")
}
