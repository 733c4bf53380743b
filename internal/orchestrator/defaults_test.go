package orchestrator

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/config"
)

// Whoever starts an orchestrator from Go and says nothing gets what the binary does without settings.
func TestZeroValuesAreTheDefaultsOfTheSettings(t *testing.T) {
	t.Parallel()
	var settings config.Orchestrator
	require.NoError(t, config.Load(&settings, config.Sources{Env: func(string) string { return "" }}))
	said, zero := FromSettings(settings, nil).withDefaults(), Config{}.withDefaults()
	require.Equal(t, "127.0.0.1:8080", said.Listen)
	require.Equal(t, config.Off, zero.Listen, "the one difference: a program that embeds an orchestrator opens no port unasked")
	said.Listen = zero.Listen
	said.Registry = zero.Registry
	for i := range reflect.TypeFor[Config]().NumField() {
		field := reflect.TypeFor[Config]().Field(i)
		if field.Type == reflect.TypeFor[actors.Settings]() {
			continue // below
		}
		require.Equal(t, reflect.ValueOf(zero).Field(i).Interface(), reflect.ValueOf(said).Field(i).Interface(), field.Name)
	}
	passed := func(c Config) actors.Config {
		return (&Orchestrator{config: c, pools: new(pools)}).actorsConfig(nil).WithDefaults()
	}
	require.Equal(t, passed(zero), passed(said))
}
