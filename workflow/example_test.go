package workflow_test

import (
	"embed"
	"fmt"
	"log"

	"github.com/pawl-dev/pawl/workflow"
)

//go:embed testdata/embedded
var files embed.FS

// A program brings its templates along, and applies them with client.ApplyTemplates.
func ExampleParseFS() {
	templates, err := workflow.ParseFS(files, "testdata/embedded/*.yaml")
	if err != nil {
		log.Fatal(err) // names each problem with its file and line
	}
	for _, t := range templates {
		fmt.Println(t.Ref(), len(t.Steps))
	}
	// Output: shop/fulfil_order@1 6
}
