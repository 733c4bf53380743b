package jsonschema

import "sync"

// cacheSize is how many compiled schemas a [Cache] keeps.
const cacheSize = 1000

// Cache keeps compiled schemas by their text. Its zero value is ready; it may
// be used by several goroutines at once. It keeps 1,000 schemas; then one of
// them, whichever, makes room.
type Cache struct {
	mu      sync.Mutex
	schemas map[string]*Schema // guarded by mu
}

// Compile returns the schema for this text, compiled once. Failures are not kept.
func (c *Cache) Compile(schema []byte) (*Schema, error) {
	c.mu.Lock()
	s, ok := c.schemas[string(schema)]
	c.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := Compile(schema) // outside the lock: two may compile the same, which is harmless
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schemas == nil {
		c.schemas = make(map[string]*Schema)
	}
	if len(c.schemas) >= cacheSize {
		for text := range c.schemas {
			delete(c.schemas, text)
			break
		}
	}
	c.schemas[string(schema)] = s
	return s, nil
}
