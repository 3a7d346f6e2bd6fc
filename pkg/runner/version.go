package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/plans"
)

// ParsedVersion is an OperatorVersion's content, with its templates parsed. It is shared by all runs that use the content.
type ParsedVersion struct {
	// Hash of the content: its whole SHA-256 in hex. Namespaces share parsed contents by it, and a part of it would not suffice: an attacker
	// who finds two contents with one hash could make the Instances of others run the attacker's templates.
	Hash      string
	Spec      *v1beta1.OperatorVersionSpec
	Templates *render.Set
	// Kinds of tasks by name.
	Kinds map[string]string
}

// Task returns the definition of a task.
func (v *ParsedVersion) Task(name string) (v1beta1.Task, bool) {
	for _, t := range v.Spec.Tasks {
		if t.Name == name {
			return t, true
		}
	}
	return v1beta1.Task{}, false
}

// maxVersions bounds how many contents are kept parsed.
const maxVersions = 256

// VersionCache keeps the contents that are in use.
type VersionCache struct {
	mu sync.Mutex
	// objects maps uid and generation of an OperatorVersion to its content, so that it is hashed once.
	objects map[string]*ParsedVersion
	content map[string]*ParsedVersion
}

// NewVersions returns an empty cache.
func NewVersions() *VersionCache {
	return &VersionCache{objects: map[string]*ParsedVersion{}, content: map[string]*ParsedVersion{}}
}

// ForObject returns the content of an OperatorVersion.
func (c *VersionCache) ForObject(ov *v1beta1.OperatorVersion) (*ParsedVersion, error) {
	key := fmt.Sprintf("%s/%d", ov.UID, ov.Generation)
	c.mu.Lock()
	v := c.objects[key]
	c.mu.Unlock()
	if v != nil {
		return v, nil
	}
	v, err := c.ForSpec(&ov.Spec)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.objects) >= maxVersions {
		clear(c.objects)
	}
	c.objects[key] = v
	return v, nil
}

// ForSpec returns the version with this spec.
func (c *VersionCache) ForSpec(spec *v1beta1.OperatorVersionSpec) (*ParsedVersion, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.content[hash]; v != nil {
		return v, nil
	}
	if len(c.content) >= maxVersions {
		clear(c.content)
	}
	spec = spec.DeepCopy()
	v := &ParsedVersion{Hash: hash, Spec: spec, Templates: render.New(spec.Templates), Kinds: plans.Kinds(spec.Tasks)}
	c.content[hash] = v
	return v, nil
}
