package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagsThatWouldBeIgnoredAreRefused(t *testing.T) {
	t.Parallel()
	s := &shell{t: t}
	for _, flag := range [][]string{{"--name", "bash"}, {"--level", "1"}} {
		o := s.run(append([]string{"conformance", "--worker", "bash:1=exit"}, flag...)...)
		require.Equal(t, ExitUsage, o.code, o.err)
		require.Contains(t, o.err, "NAME:LEVEL=COMMAND")
	}
	require.Equal(t, ExitUsage, s.run("watch", "0190aaaa", "--limit", "3").code)
}

func TestATextThatIsEmptyIsRefused(t *testing.T) {
	t.Parallel()
	s := &shell{t: t}
	for _, args := range [][]string{
		{"submit", "test/diamond", "--key", ""}, {"submit", "test/diamond", "--correlation-id", ""}, {"submit", "test/diamond", "--reply-to", ""},
		{"submit", "test/diamond", "--input", ""}, {"enqueue", "test.echo", "--queue", ""}, {"task", "list", "--template", ""},
		{"task", "list", "--state", ""}, {"dead", "drop", "1", "--queue", "", "--reason", "r"}, {"task", "list", "--database-url", ""},
	} {
		o := s.run(args...)
		require.Equal(t, ExitUsage, o.code, args)
		require.Contains(t, o.err, "is empty: write a string that is not empty, or leave it out", args)
	}
	o := s.run("dead", "drop", "1", "--reason", "")
	require.Equal(t, ExitUsage, o.code)
	require.Contains(t, o.err, "say why")
}

func TestATagIsGivenOnce(t *testing.T) {
	t.Parallel()
	s := &shell{t: t}
	for _, args := range [][]string{{"submit", "test/diamond"}, {"task", "list"}} {
		o := s.run(append(args, "--tag", "a=1", "--tag", "a=2")...)
		require.Equal(t, ExitUsage, o.code, args)
		require.Contains(t, o.err, `tag "a" is given twice`, args)
	}
}

func TestAFlagOfAnotherTypeIsToldInWords(t *testing.T) {
	t.Parallel()
	s := &shell{t: t}
	for want, args := range map[string][]string{
		`invalid argument "x" for "--limit" flag: write a whole number` + "\n":                    {"task", "list", "--limit", "x"},
		`invalid argument "99999999999999999999" for "--limit" flag: write a whole number` + "\n": {"task", "list", "--limit", "99999999999999999999"},
		`invalid argument "x" for "--wait" flag: write true or false` + "\n":                      {"submit", "a/b", "--wait=x"},
		`invalid argument "x" for "--since" flag: "x" is not a duration; write it like 30s, 5m`:   {"task", "list", "--since", "x"},
	} {
		o := s.run(args...)
		require.Equal(t, ExitUsage, o.code, args)
		require.Contains(t, o.err, want, args)
	}
}

func TestNumbersThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	s := &shell{t: t}
	for _, args := range [][]string{
		{"demo", "--latency", "-5ms"}, {"demo", "--timeout", "-1s"}, {"demo", "--timeout", "0"}, {"demo", "--orders", "-1"},
		{"watch", "--interval", "-1s"}, {"doctor", "--grace", "-1s"},
	} {
		require.Equal(t, ExitUsage, s.run(args...).code, args)
	}
}
