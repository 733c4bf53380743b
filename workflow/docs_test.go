package workflow

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/kit"
)

// transitionTable groups transitions of one entity that differ in From only.
func transitionTable(entity Entity) string {
	type row struct {
		to, via, event string
		operator       bool
	}
	from := make(map[row][]string)
	var order []row
	for _, tr := range LegalTransitions() {
		if tr.Entity != entity {
			continue
		}
		r := row{tr.To, tr.Via, tr.Event, tr.OperatorOnly}
		if from[r] == nil {
			order = append(order, r)
		}
		name := "*(created)*"
		if tr.From != "" {
			name = "`" + tr.From + "`"
		}
		from[r] = append(from[r], name)
	}
	slices.SortStableFunc(order, func(a, b row) int { return stateNumber(entity, a.to) - stateNumber(entity, b.to) })
	var b strings.Builder
	b.WriteString("| to | event | from | via | who |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range order {
		via, who := "", "engine"
		if r.via != "" {
			via = "`" + r.via + "`"
		}
		if r.operator {
			who = "operator"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.to, r.event, strings.Join(from[r], ", "), via, who)
	}
	return b.String()
}

func stateNumber(entity Entity, state string) int {
	if entity == EntityTask {
		return slices.Index(taskStates, TaskState(state))
	}
	return slices.Index(stepStates, StepState(state))
}

// Not parallel: with -update it writes the file that the others read.
func TestDocumentedTransitionsAreTheLegalOnes(t *testing.T) {
	for _, entity := range []Entity{EntityTask, EntityStep} {
		want := transitionTable(entity)
		have, write := kit.Section(t, "../docs/states.md", string(entity)+" transitions")
		if *update {
			write(want)
			continue
		}
		require.Equal(t, want, have, "run go test ./workflow -run Documented -update")
	}
}

var (
	diagram = regexp.MustCompile("(?s)```mermaid\n(.*?)```")
	arrow   = regexp.MustCompile(`^\s*(\S+) --> (\S+?)(?:: (.*))?$`)
)

func TestDrawnTransitionsAreLegal(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../docs/states.md")
	require.NoError(t, err)
	diagrams := diagram.FindAllStringSubmatch(string(data), -1)
	require.Len(t, diagrams, 2)
	for i, entity := range []Entity{EntityTask, EntityStep} {
		drawn := make(map[string]bool)
		for _, line := range strings.Split(diagrams[i][1], "\n") {
			m := arrow.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			from, to, event := m[1], m[2], m[3]
			drawn[to] = true
			if to == "[*]" {
				require.True(t, TaskState(from).IsFinal() || StepState(from).IsFinal(), line)
				continue
			}
			if from == "[*]" {
				from = ""
			}
			tr, ok := legal[pair{entity, from, to}]
			require.True(t, ok, "not legal: %s", line)
			require.Equal(t, tr.Event, event, line)
		}
		states := names(taskStates)
		if entity == EntityStep {
			states = names(stepStates)
		}
		for _, state := range states {
			require.True(t, drawn[state], "%s %s is not drawn", entity, state)
		}
	}
}

func names[S ~string](states []S) []string {
	all := make([]string, len(states))
	for i, s := range states {
		all[i] = string(s)
	}
	return all
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestDocumentedTemplatesParse(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../docs/templates.md")
	require.NoError(t, err)
	blocks := yamlBlock.FindAllStringSubmatch(string(data), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		_, err := ParseTemplates("docs/templates.md", []byte(block[1]))
		require.NoError(t, err, block[1])
	}
	// The first is the complete example.
	for _, field := range slices.Concat(templateFields, stepFields, retryFields, identityFields, claimFields, needFields) {
		require.Regexp(t, `(?m)[ {-]*\b`+field+`:`, blocks[0][1], "the complete example lacks %s", field)
		require.Contains(t, string(data), "| `"+field+"` |", "the tables lack %s", field)
	}
}
