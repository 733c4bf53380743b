package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// NewLogger writes text when the output is a terminal and JSON otherwise. Times are UTC.
func NewLogger(out io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			a.Value = slog.TimeValue(a.Value.Time().UTC())
		}
		return a
	}}
	if IsTerminal(out) {
		return slog.New(slog.NewTextHandler(out, options))
	}
	return slog.New(slog.NewJSONHandler(out, options))
}

// ParseLevel reads debug, info, warn or error; empty is info.
func ParseLevel(text string) (slog.Level, error) {
	var level slog.Level
	if text == "" {
		return slog.LevelInfo, nil
	}
	switch strings.ToLower(text) {
	case "debug", "info", "warn", "error":
		err := level.UnmarshalText([]byte(text))
		return level, err
	}
	return level, fmt.Errorf("log level %.40q is unknown: write debug, info, warn or error", text)
}

// IsTerminal says whether the output is a character device, where people read.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	stat, err := file.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}
