package invoices

import _ "embed" // the two files

// Schema makes the tables and registers the entity.
//
//go:embed invoices.sql
var Schema string

// Templates are those of the namespace billing, in YAML.
//
//go:embed billing.yaml
var Templates []byte
