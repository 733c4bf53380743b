package workflow

import (
	"fmt"
	"strconv"
	"time"
)

// MaxDuration is the longest duration that can be written: ten years.
const MaxDuration = 3650 * 24 * time.Hour

var durationUnits = []struct {
	name string
	unit time.Duration
}{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"ms", time.Millisecond}, {"m", time.Minute}, {"s", time.Second},
}

// ParseDuration reads a duration as templates and configuration write it: 30s,
// 5m, 1h30m, 7d, 250ms, each unit at most once and the greater one first, or 0.
// A day has 24 hours. More than ten years is an error.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	var total time.Duration
	last := MaxDuration + 1
	rest := text
	for rest != "" {
		n, unit, tail, ok := nextQuantity(rest)
		if !ok || unit >= last {
			return 0, fmt.Errorf("%s is not a duration; write it like 30s, 5m, 1h30m or 7d", quote(text))
		}
		if n > int64(MaxDuration/unit) || total+time.Duration(n)*unit > MaxDuration {
			return 0, fmt.Errorf("%s is too long; at most 3650d", quote(text))
		}
		total += time.Duration(n) * unit
		last, rest = unit, tail
	}
	if text == "" {
		return 0, fmt.Errorf("%s is not a duration; write it like 30s, 5m, 1h30m or 7d", quote(text))
	}
	return total, nil
}

func nextQuantity(s string) (n int64, unit time.Duration, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == 0 || i > 15 {
		return 0, 0, "", false
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	if err != nil {
		return 0, 0, "", false
	}
	for _, u := range durationUnits {
		if tail := s[i:]; len(tail) >= len(u.name) && tail[:len(u.name)] == u.name {
			return n, u.unit, tail[len(u.name):], true
		}
	}
	return 0, 0, "", false
}

// FormatDuration writes a duration as [ParseDuration] reads it, down to milliseconds.
func FormatDuration(d time.Duration) string {
	if d < time.Millisecond {
		return "0"
	}
	out := ""
	for _, i := range []int{0, 1, 3, 4, 2} { // d h m s ms
		u := durationUnits[i]
		if n := d / u.unit; n > 0 {
			out += strconv.FormatInt(int64(n), 10) + u.name
			d -= n * u.unit
		}
	}
	return out
}
