package live

import (
	"bytes"
	"os"
	"runtime"
	"strings"
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
	s := &Screen{out: &out, isTTY: true, size: func() (int, int, error) { return 80, 3, nil }}
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

func TestAFrameFitsTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &Screen{out: &out, isTTY: true, size: func() (int, int, error) { return 80, 3, nil }}
	s.Draw([]string{"a", "b", "c", "d"})
	require.Equal(t, 2, strings.Count(out.String(), "\n"))
	s.Draw([]string{"e"})
	require.Contains(t, out.String(), "\x1b[2A", "the cursor goes back as far as it came")
}

func TestAPipeThatNobodyReads(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = writer.Close() })
	require.False(t, Unread(writer))
	require.False(t, Unread(new(bytes.Buffer)))
	require.NoError(t, reader.Close())
	require.Equal(t, runtime.GOOS != "windows", Unread(writer))
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
