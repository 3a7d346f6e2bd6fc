// Package chart makes the Helm chart of a release from what init installs: the same objects, with template actions where the values and the
// settings of an installation change them.
package chart

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
)

// Name of the chart, which is the folder in its archive.
const Name = "kudo"

// written are the files that are written by hand: the values with their schema, and what the templates include.
//
//go:embed all:files
var written embed.FS

// Options of a chart.
type Options struct {
	// Version of kudo, such as v0.2.0.
	Version string
	// Image of the manager, by its digest.
	Image string
	// URL is where people find the project.
	URL string
}

// Files returns the files of the chart by their names below its folder.
func Files(o Options) (map[string][]byte, error) {
	_, imagePath, found := strings.Cut(o.Image, "/")
	if !found || settings.CheckPipeImage(o.Image) != nil {
		return nil, fmt.Errorf("image %q of the chart must be REGISTRY/PATH@sha256:DIGEST", o.Image)
	}
	metadata, err := yaml.Marshal(map[string]any{
		"apiVersion": "v2", "name": Name, "version": strings.TrimPrefix(o.Version, "v"), "appVersion": o.Version, "type": "application",
		"description": "Runs packages of operators on Kubernetes: their plans, phases and steps",
		"home":        o.URL, "kubeVersion": fmt.Sprintf(">=1.%d.0-0", kudoinit.MinKubernetes),
	})
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{"Chart.yaml": metadata}
	constants := strings.NewReplacer(markImagePath, imagePath, markImage, o.Image)
	err = fs.WalkDir(written, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := written.ReadFile(name)
		out[placeOf(path.Base(name))] = []byte(constants.Replace(string(text)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, addTemplates(out, o.Version)
}

// placeOf returns where a file that is written by hand stands in the chart.
func placeOf(name string) string {
	if strings.HasPrefix(name, "values.") {
		return name
	}
	return "templates/" + name
}

// addTemplates adds a template for each object.
func addTemplates(out map[string][]byte, version string) error {
	objs, err := objects(version)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		name := fmt.Sprintf("templates/%s-%s.yaml", strings.ToLower(obj.GetKind()), obj.GetName())
		if out[name] != nil {
			return fmt.Errorf("two objects of the chart have the name %s", name)
		}
		m := &marker{}
		if err := m.mark(obj); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return err
		}
		if out[name], err = m.template(string(text), condition(obj)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// objects returns all objects that the chart may have, with marks where options of kudoinit change them.
func objects(version string) ([]*unstructured.Unstructured, error) {
	o := kudoinit.Options{
		Namespace: markNamespace, Image: "kudo", Account: markAccount, Version: version,
		Settings: settings.Settings{
			Mode: markMode, DefaultAccount: markDefaultAccount, RunAsEverywhere: true, AllowedHosts: []string{markAllowedHosts},
			DefaultCRDURL: markCRDURL, TokenRealms: []string{markTokenRealms}, RequirePackagePolicy: true,
		},
	}
	all, err := kudoinit.Objects(o)
	if err != nil {
		return nil, err
	}
	certified, own := o, o
	certified.CertManager, own.Account, own.Values.Monitoring, own.Values.NetworkPolicy = true, "", true, true
	for _, options := range []kudoinit.Options{certified, own} {
		more, err := kudoinit.Objects(options)
		if err != nil {
			return nil, err
		}
		all = merge(all, more)
	}
	return slices.DeleteFunc(all, func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() == "Namespace" // Helm keeps the release in it, so it exists before the chart, and stays after it
	}), nil
}

// merge adds the objects that a list has and another list has not, and the annotations that objects have in one of them only.
func merge(all, more []*unstructured.Unstructured) []*unstructured.Unstructured {
	known := map[string]*unstructured.Unstructured{}
	for _, obj := range all {
		known[obj.GetKind()+" "+obj.GetName()] = obj
	}
	for _, obj := range more {
		has := known[obj.GetKind()+" "+obj.GetName()]
		if has == nil {
			all = append(all, obj)
			continue
		}
		for key, value := range obj.GetAnnotations() {
			annotate(has, key, value)
		}
	}
	return all
}

func annotate(obj *unstructured.Unstructured, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if _, has := annotations[key]; !has {
		annotations[key] = value
	}
	obj.SetAnnotations(annotations)
}

// errNoArguments says that the manifest of the Deployment is not as this package expects it.
var errNoArguments = errors.New("the first container must have arguments up to --pipe-image")
