package sql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/config"
)

// The engine's defaults stand in the settings' tags, in the table, and in configure_engine, which gives them back.
func TestDefaultsOfTheEngineAreThoseOfTheSettings(t *testing.T) {
	k := newKit(t)
	const kept = `select (to_jsonb(s) - 'one_row') || (select jsonb_object_agg(r.key, extract(epoch from r.value::interval))
		from jsonb_each_text(to_jsonb(s)) r where r.key like '%retention') from pawl.engine_settings s`
	const other = `update pawl.engine_settings set staged = not staged, direct = not direct, announce = not announce,
		max_steps_per_transaction = 7, dead_letter_retention = '1 h', absorbed_retention = '1 h', audit_retention = '1 h',
		operation_retention = '1 h'`
	fresh := k.object(kept)
	var text strings.Builder
	for _, s := range config.Settings(&config.Engine{}) {
		value := s.Default
		switch {
		case value == "":
			value = "false"
		case strings.HasPrefix(s.Key, "retention."):
			value = `"` + value + `"`
		}
		fmt.Fprintf(&text, "%s = %s\n", s.Key, value)
	}
	file, err := config.Parse("pawl.toml", []byte(text.String()))
	require.NoError(t, err, text.String())
	settings := file.Engine()
	require.Len(t, settings, len(fresh))

	k.Exec(other)
	k.object("select pawl.configure_engine($1, 'ann', 'r')", settings)
	require.Equal(t, fresh, k.object(kept))

	k.Exec(other)
	for name := range settings {
		settings[name] = nil
	}
	k.object("select pawl.configure_engine($1, 'ann', 'r')", settings)
	require.Equal(t, fresh, k.object(kept))
}
