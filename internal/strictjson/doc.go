// Package strictjson reads JSON objects into structs and refuses what
// encoding/json lets pass: unknown fields, names in another case, missing fields,
// null and empty strings. Its errors name fields and never quote values.
package strictjson
