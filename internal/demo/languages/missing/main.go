// Command missing prints what the demo's workers of other languages lack, one word a line: python, node.
package main

import (
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/internal/demo/languages"
)

func main() {
	if _, err := languages.Python("demo"); err != nil {
		fmt.Println("python")
	}
	if _, err := languages.TypeScript("demo"); errors.Is(err, languages.ErrNoNode) {
		fmt.Println("node")
	}
}
