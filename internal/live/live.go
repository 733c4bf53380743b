package live

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Screen draws frames over each other. On anything but a terminal Draw does nothing: print lines instead.
type Screen struct {
	isTTY bool
	size  func() (width, height int, err error) // of the terminal

	mu    sync.Mutex // guards what follows: frames and lines may come from several goroutines
	out   io.Writer
	drawn int // lines of the last frame
}

// New is a screen on out.
func New(out io.Writer) *Screen {
	s := &Screen{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		s.isTTY = true
		s.size = func() (int, int, error) { return term.GetSize(int(file.Fd())) }
	}
	return s
}

// Terminal says whether frames are drawn at all.
func (s *Screen) Terminal() bool { return s.isTTY }

// Width of the terminal, in columns.
func (s *Screen) Width() int {
	if s.isTTY {
		if width, _, err := s.size(); err == nil && width >= 40 {
			return width
		}
	}
	return 100
}

// Lines is how many a frame may have: those of the terminal without the cursor's.
func (s *Screen) Lines() int {
	if s.isTTY {
		if _, height, err := s.size(); err == nil && height > 1 {
			return height - 1
		}
	}
	return 100
}

// Draw replaces the last frame. What does not fit the terminal is cut: what wraps or scrolls away could not be drawn over.
func (s *Screen) Draw(lines []string) {
	if !s.isTTY {
		return
	}
	lines = lines[:min(len(lines), s.Lines())]
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	width := s.Width()
	for _, line := range lines {
		if r := []rune(line); len(r) >= width {
			line = string(r[:width-1])
		}
		b.WriteString("\r\x1b[2K" + line + "\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	fmt.Fprint(s.out, b.String())
}

// Print puts a line that stays above the frame, which the next Draw repeats.
func (s *Screen) Print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isTTY && s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\r\x1b[J", s.drawn)
		s.drawn = 0
	}
	fmt.Fprintln(s.out, line)
}

// Keep leaves the last frame where it is: what follows comes below it.
func (s *Screen) Keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = 0
}

// Bar is a bar of width characters.
func Bar(done, total, width int) string {
	if total <= 0 {
		return strings.Repeat("░", width)
	}
	full := min(max(done, 0), total) * width / total
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}
