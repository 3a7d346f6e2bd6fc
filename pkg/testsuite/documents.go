package testsuite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Objects reads the objects of a file, or of the YAML files of a folder.
func Objects(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = yamlFiles(path); err != nil {
			return nil, err
		}
	}
	var out []*unstructured.Unstructured
	for _, file := range files {
		objs, err := Documents(file)
		if err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

// manifests reads the objects of a file, or of a folder and those in it.
func manifests(path string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || file != path && !isYAML(file) {
			return err
		}
		objs, err := Documents(file)
		out = append(out, objs...)
		return err
	})
	return out, err
}

func isYAML(file string) bool {
	ext := filepath.Ext(file)
	return ext == ".yaml" || ext == ".yml" || ext == ".json"
}

func yamlFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range entries {
		if !entry.IsDir() && isYAML(entry.Name()) {
			out = append(out, filepath.Join(dir, entry.Name()))
		}
	}
	return out, nil
}

// maxFile bounds a file of tests, in bytes.
const maxFile = 16 << 20

// Documents reads the objects of a YAML file.
func Documents(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s: is larger than %d bytes", path, maxFile)
	}
	out, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// parse splits YAML into objects; a List is what it holds.
func parse(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var out []*unstructured.Unstructured
	for i := 1; ; i++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		var value any
		if len(raw) > 0 {
			// This decoder keeps integers as such.
			if err := utiljson.Unmarshal(raw, &value); err != nil {
				return nil, fmt.Errorf("document %d: %w", i, err)
			}
		}
		if value == nil {
			continue
		}
		content, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("document %d is no object", i)
		}
		objs, err := flatten(content)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		out = append(out, objs...)
	}
}

// flatten returns the object of a document, or those of a List.
func flatten(content map[string]any) ([]*unstructured.Unstructured, error) {
	if len(content) == 0 {
		return nil, nil
	}
	obj := &unstructured.Unstructured{Object: content}
	if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
		return nil, errors.New("lacks apiVersion or kind")
	}
	if metadata, set := content["metadata"]; set {
		if _, ok := metadata.(map[string]any); !ok && metadata != nil {
			return nil, errors.New("metadata is no map")
		}
	}
	items, ok := content["items"].([]any)
	if obj.GetKind() != "List" || obj.GetAPIVersion() != "v1" || !ok {
		return []*unstructured.Unstructured{obj}, nil
	}
	var out []*unstructured.Unstructured
	for n, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("item %d of the List is no object", n+1)
		}
		objs, err := flatten(content)
		if err != nil {
			return nil, fmt.Errorf("item %d of the List: %w", n+1, err)
		}
		out = append(out, objs...)
	}
	return out, nil
}
