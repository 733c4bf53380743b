package messaging

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/nearest"
)

//go:embed schemas/*.json
var schemaFiles embed.FS

// SchemaNames lists the bodies that Schema knows.
func SchemaNames() []string {
	return []string{"reply", "step_enqueue", "step_message", "step_result", "task_finalization", "task_request"}
}

// Schema returns the JSON Schema (draft 2020-12) of a body, such as
// "task_request".
func Schema(name string) (json.RawMessage, error) {
	schema, err := schemaFiles.ReadFile("schemas/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("reading schema %q: there are %s%s", name, strings.Join(SchemaNames(), ", "), nearest.Suggestion(name, SchemaNames()))
	}
	return schema, nil
}
