package crdtarball

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// configMapSource puts a tarball together from the binaryData of ConfigMaps.
type configMapSource struct {
	spec       v1beta1.ConfigMapSource
	namespace  string
	configMaps ConfigMaps
}

func newConfigMapSource(spec v1beta1.ConfigMapSource, namespace string, access Access) (Source, error) {
	if len(spec.ConfigMaps) == 0 {
		return nil, fail(ReasonSpec, "configMapSource.configMaps is empty: name the ConfigMaps that hold the tarball, in order")
	}
	if err := checkPin(spec.SHA256); err != nil {
		return nil, err
	}
	return &configMapSource{spec: spec, namespace: namespace, configMaps: access.ConfigMaps}, nil
}

// Identity implements Source: `configmap://<namespace>/<name>[:<key>],…`.
func (s *configMapSource) Identity() string {
	parts := make([]string, len(s.spec.ConfigMaps))
	for i, part := range s.spec.ConfigMaps {
		parts[i] = part.Name
		if part.Key != "" {
			parts[i] += ":" + part.Key
		}
	}
	return "configmap://" + s.namespace + "/" + strings.Join(parts, ",")
}

// Pin implements Source.
func (s *configMapSource) Pin() string { return s.spec.SHA256 }

// Access implements Source.
func (s *configMapSource) Access() string { return "" }

// Fetch implements Source. The resourceVersions of the ConfigMaps are the validator.
func (s *configMapSource) Fetch(ctx context.Context, to Target, known Validators) (Fetched, error) {
	if s.configMaps == nil {
		return Fetched{}, fail(ReasonCredentials, "this command cannot read ConfigMaps")
	}
	var parts [][]byte
	var versions []string
	size := int64(0)
	for _, part := range s.spec.ConfigMaps {
		found, err := s.configMaps.ConfigMap(ctx, s.namespace, part.Name)
		if err != nil {
			return Fetched{}, unreadable(err, "ConfigMap", s.namespace, part.Name)
		}
		data, err := binaryPart(found, part.Key)
		if err != nil {
			return Fetched{}, fail(ReasonCredentials, "the ConfigMap %s/%s %w", s.namespace, part.Name, err)
		}
		parts = append(parts, data)
		versions = append(versions, string(found.UID)+"/"+found.ResourceVersion)
		size += int64(len(data))
	}
	version := strings.Join(versions, ",")
	if known.ETag != "" && known.ETag == version {
		return Fetched{NotModified: true, Validators: known}, nil
	}
	if err := to.Expect(size); err != nil {
		return Fetched{}, err
	}
	for _, part := range parts {
		if _, err := to.Write(part); err != nil {
			return Fetched{}, err
		}
	}
	return Fetched{Validators: Validators{ETag: version}}, nil
}

// binaryPart is the value of a key in binaryData; without a key, of the only one.
func binaryPart(from *corev1.ConfigMap, key string) ([]byte, error) {
	if key == "" {
		keys := slices.Sorted(maps.Keys(from.BinaryData))
		if len(keys) != 1 {
			return nil, fmt.Errorf("has %d keys in binaryData: one of them must be named in key", len(keys))
		}
		key = keys[0]
	}
	if data, ok := from.BinaryData[key]; ok {
		return data, nil
	}
	if _, ok := from.Data[key]; ok {
		return nil, fmt.Errorf("has the key %s in data: put a part of a tarball into binaryData, where kubectl create configmap --from-file "+
			"puts it", key)
	}
	return nil, fmt.Errorf("has no key %s in binaryData", key)
}
