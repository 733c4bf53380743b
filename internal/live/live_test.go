package live

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBarShowsTheShareDone(t *testing.T) {
	t.Parallel()
	require.Equal(t, "██░░", Bar(1, 2, 4))
	require.Equal(t, "████", Bar(3, 2, 4))
	require.Equal(t, "░░░░", Bar(-1, 2, 4))
	require.Equal(t, "░░░░", Bar(0, 0, 4))
}

func TestFramesReplaceEachOtherAndLinesStay(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &Screen{out: &out, isTTY: true}
	s.Draw([]string{"a", "b"})
	s.Draw([]string{"c", "d"})
	require.Contains(t, out.String(), "b\n\x1b[J\x1b[2A", "the second frame begins where the first did")
	out.Reset()
	s.Print("stays")
	require.Equal(t, "\x1b[2A\r\x1b[Jstays\n", out.String())
	out.Reset()
	s.Draw([]string{"e"})
	s.Keep()
	s.Print("below")
	require.NotContains(t, out.String(), "\x1b[1A")
}

func TestOtherThanATerminalGetsLinesOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := New(&out)
	require.False(t, s.Terminal())
	s.Draw([]string{"a"})
	s.Print("line")
	require.Equal(t, "line\n", out.String())
}
