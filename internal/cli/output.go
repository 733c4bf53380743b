package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// printJSON prints one value, indented.
func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}

// say prints a line for people; nothing with --json.
func (a *app) say(format string, args ...any) {
	if !a.json {
		fmt.Fprintln(a.Out, printable(fmt.Sprintf(format, args...)))
	}
}

// printable is text without what moves a terminal's cursor or changes its colours: messages of errors and reasons are anybody's.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r
	}, s)
}

// table prints rows under a heading in aligned columns, or the sentence when there are none.
func (a *app) table(heading []string, rows [][]string, none string) error {
	if len(rows) == 0 {
		fmt.Fprintln(a.Out, none)
		return nil
	}
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heading, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(printable(cell), "\n", " ")
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func text(value *string) string {
	if value == nil {
		return "-"
	}
	return dash(*value)
}

// dash stands where there is nothing.
func dash(value string) string {
	if value == "" {
		return "-"
	}
	return value
}

func when(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// span is a duration for people: 420ms, 3.2s, 5m10s, 3h, 12d.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// oneLine is a text for a table's last column, whole.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// clip shortens a text to n characters.
func clip(s string, n int) string {
	s = oneLine(s)
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// indented is a JSON value for people, its later lines moved in. Numbers stay as they are written.
func indented(raw json.RawMessage, indent string) string {
	if len(raw) == 0 {
		return "-"
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, indent, "  ") != nil {
		return string(raw)
	}
	return b.String()
}
