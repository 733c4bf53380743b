package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// describe turns the fields of an object into "name value" pairs, ordered by name, those of objects in it among them.
func describe(fields map[string]any) []string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		if value == nil {
			continue
		}
		if inner, ok := value.(map[string]any); ok {
			parts = append(parts, describe(inner)...)
			continue
		}
		parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+plain(value))
	}
	return parts
}

func plain(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		if v == float64(int64(v)) {
			return fmt.Sprintf("%d", int64(v))
		}
	}
	encoded, _ := json.Marshal(value) // it came from JSON
	return string(encoded)
}
