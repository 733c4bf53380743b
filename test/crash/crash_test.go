package crash

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/kit"
)

// ways to die at a point: error is one that handlers catch (out of memory), always the same each time that the point is
// passed, cancel one that they do not catch (a statement timeout), kill ends the backend. Commits: before, the connection is cut when all is done but not committed; lost, the
// COMMIT was done and the client never hears of it.
var ways = []string{"error", "always", "cancel", "kill"}

// crash is one case: an operation dies in some way at its nth passage of a point.
type crash struct {
	scenario Scenario
	way      string
	at       int
	point    string
	repeat   bool // the client sends the operation again, not knowing what became of it
}

func (c crash) String() string {
	return fmt.Sprintf("%s/%s at %d (%s), repeated: %t", c.scenario.Name, c.way, c.at, c.point, c.repeat)
}

// run prepares a scenario and carries its operation out some times. Returns the points that the first one passed.
func (l *lab) run(t *testing.T, s Scenario, times int) []string {
	t.Helper()
	call := s.Setup(l.clean(t))
	var points []string
	for n := range times {
		session := l.open(t, 1, "record", "")
		_, err := session.Exec(t.Context(), call.SQL, call.Args...)
		l.close(t, session)
		if n == 0 {
			require.NoError(t, err, s.Name)
			points = session.points
		} else if err != nil {
			require.True(t, refused(err), "%s cannot be repeated: %v", s.Name, err)
		}
	}
	return points
}

// outcomes a scenario may have: those of the operation not done, done once, and done twice.
func (l *lab) outcomes(t *testing.T, s Scenario) []string {
	t.Helper()
	var all []string
	for times := range 3 {
		l.run(t, s, times)
		t.Logf("%s, done %d times", s.Name, times)
		heal(l.kit(t))
		l.healthy(t, s.Name)
		if !strings.HasPrefix(s.Name, "reconcile") {
			require.Zero(t, kit.Get[int](l.kit(t), "select count(*)::int from pawl.repairs"), "%s needed the reconciler", s.Name)
		}
		all = append(all, outcome(l.kit(t)))
	}
	if strings.HasPrefix(s.Name, "claim an entity again") {
		require.Equal(t, []string{all[0], all[0], all[0]}, all, "a redelivery under an open claim changes nothing")
	}
	return all
}

// cases of a scenario: every way at every passage, and the commits, each with and without a repetition by the client.
func (s Scenario) crashes(points []string) []crash {
	var all []crash
	for _, repeat := range []bool{false, true} {
		for i, point := range points {
			for _, way := range ways {
				all = append(all, crash{s, way, i + 1, point, repeat})
			}
		}
		all = append(all, crash{s, "before", 0, "commit", repeat}, crash{s, "lost", 0, "commit", repeat})
	}
	return all
}

func (l *lab) crash(t *testing.T, c crash, allowed []string) {
	t.Helper()
	k := l.clean(t)
	call := c.scenario.Setup(k)
	watch(k)
	at := strconv.Itoa(c.at)
	if c.way == "always" {
		at = c.point
	}
	s := l.open(t, 1, c.way, at)
	_, err := s.Exec(t.Context(), map[bool]string{true: "begin", false: ""}[c.way == "before"])
	require.NoError(t, err)
	_, err = s.Exec(t.Context(), call.SQL, call.Args...)
	switch c.way {
	case "cancel":
		require.Equal(t, "57014", code(err), "%s: %v", c, err)
	case "kill":
		require.Error(t, err, "%s", c)
	case "error", "always":
		require.True(t, err == nil || code(err) == "53200", "%s: %v", c, err)
	default:
		require.NoError(t, err, "%s", c)
	}
	l.close(t, s)
	if c.repeat {
		_, err = l.pool.Exec(t.Context(), call.SQL, call.Args...)
		require.True(t, err == nil || refused(err), "%s: %v", c, err)
	}
	heal(k)
	l.healthy(t, c.String())
	accounted(t, k, c.String())
	require.Contains(t, allowed, outcome(k), "%s", c)
}

// workers, each with a lab of its own.
const workers = 2

func TestEveryCrashPoint(t *testing.T) {
	labs := make([]*lab, workers)
	for i := range labs {
		labs[i] = newLab(t)
	}
	visited := map[string]bool{}
	var all []crash
	passages := 0
	for _, s := range scenarios() {
		points := labs[0].run(t, s, 1)
		passages += len(points)
		for _, p := range points {
			visited[p] = true
		}
		all = append(all, s.crashes(points)...)
	}
	byScenario := map[string][]crash{}
	chosen := sample(t, all, 130)
	for _, c := range chosen {
		byScenario[c.scenario.Name] = append(byScenario[c.scenario.Name], c)
	}
	t.Run("crash", func(t *testing.T) {
		for i, l := range labs {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for n, name := range slices.Sorted(maps.Keys(byScenario)) {
					if n%workers != i {
						continue
					}
					allowed := l.outcomes(t, byScenario[name][0].scenario)
					for _, c := range byScenario[name] {
						l.crash(t, c, allowed)
					}
				}
			})
		}
	})
	t.Logf("%d operations pass %d points: %d crashes enumerated, %d visited", len(scenarios()), passages, len(all), len(chosen))
	reportPoints(t, visited)
}

// unvisited functions, and why no operation of the scenarios passes them.
var unvisited = map[string]string{
	"refuse_command": "raises", "refuse_setting": "raises", "refuse_transition": "raises",
	"grant_queue": "privileges only", "revoke_queue": "privileges only", "install_roles": "privileges only", "refresh_roles": "privileges only",
}

// reportPoints prints which points of the files the operations passed, and fails for a function that none passes.
func reportPoints(t *testing.T, visited map[string]bool) {
	t.Helper()
	built, err := Functions()
	require.NoError(t, err)
	points, passed := 0, 0
	var missed []string
	for _, f := range built {
		points += f.Points
		here := 0
		for n := range f.Points {
			if visited[fmt.Sprintf("%s %d", f.Name, n+1)] {
				here++
			} else {
				missed = append(missed, fmt.Sprintf("%s/%d", f.Name, n+1))
			}
		}
		passed += here
		if _, known := unvisited[f.Name]; here == 0 && !known {
			t.Errorf("no scenario passes a point of %s: add one", f.Name)
		}
	}
	t.Logf("points in %d functions: %d, of them passed by an operation %d; the others lie on branches such as refusals: %s",
		len(built), points, passed, strings.Join(missed, " "))
}
