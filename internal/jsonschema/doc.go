// Package jsonschema compiles JSON Schemas and checks documents against them.
//
// It is a thin layer over santhosh-tekuri/jsonschema with three rules of ours:
// nothing is loaded from the network or from files, formats are asserted, and
// what it says of a document never repeats the document's values, which may be secret.
package jsonschema
