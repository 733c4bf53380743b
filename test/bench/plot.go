package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// plot draws horizontal bars of steps per second.
func (b *bench) plot(engines []engine, cells []cell) string {
	type bar struct {
		label string
		value float64
		own   bool
	}
	var bars []bar
	most := 1.0
	for _, c := range cells {
		for _, e := range engines {
			v := b.median(key(e, c), func(f figures) float64 { return f.StepsPerSecond })
			if !math.IsNaN(v) {
				bars = append(bars, bar{c.label + " — " + e.Name(), v, e.Name() == "Pawl"})
				most = max(most, v)
			}
		}
	}
	var s strings.Builder
	height := 22*len(bars) + 20
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="990" height="%d" font-family="sans-serif" font-size="12">`, height)
	for i, bar := range bars {
		y, color := 10+22*i, "#b8c0cc"
		if bar.own {
			color = "#2f6f9f"
		}
		fmt.Fprintf(&s, `<text x="430" y="%d" text-anchor="end">%s</text><rect x="440" y="%d" width="%.0f" height="16" fill="%s"/><text x="%.0f" y="%d">%s</text>`,
			y+13, html.EscapeString(bar.label), y, bar.value/most*450, color, 446+bar.value/most*450, y+13, grouped(bar.value))
	}
	s.WriteString("</svg>\n")
	return s.String()
}
