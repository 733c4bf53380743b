package workflow

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const maxExpression = 500

var (
	pathPattern = regexp.MustCompile(`^input(\.[A-Za-z0-9_-]+)+$`)
	holePattern = regexp.MustCompile(`\$\{[^}]*\}?`)
)

// parseExpression checks an expression over a task's input and returns its one
// canonical form: literal text with ${input.a.b} in it. A bare path input.a.b
// is short for ${input.a.b}.
func parseExpression(text string) (string, error) {
	if len(text) > maxExpression {
		return "", fmt.Errorf("is longer than %d bytes", maxExpression)
	}
	if pathPattern.MatchString(text) {
		return "${" + text + "}", nil
	}
	holes := holePattern.FindAllString(text, -1)
	if len(holes) == 0 {
		if strings.HasPrefix(text, "input") {
			return "", fmt.Errorf("%s is not a path; write it like input.order.id", quote(text))
		}
		return "", errors.New("is the same for every task; write a path like input.order_id, or text with ${input.order_id} in it")
	}
	for _, hole := range holes {
		path, closed := strings.CutSuffix(strings.TrimPrefix(hole, "${"), "}")
		switch {
		case !closed:
			return "", fmt.Errorf("%s lacks its closing brace", quote(hole))
		case !pathPattern.MatchString(path):
			return "", fmt.Errorf("%s is not a path into the input; write it like ${input.order.id}", quote(hole))
		}
	}
	return text, nil
}
