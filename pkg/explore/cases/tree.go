package cases

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/lua"
)

// maxFile bounds a file; no YAML of use is larger.
const maxFile = yamldoc.MaxBytes

// Folder is a folder that has Configs, and cases in testdata/ beside them.
type Folder struct {
	// Path in the tree.
	Path string
	// Configs of the folder's files.
	Configs []v1alpha1.Config
	// Layer that the Configs make.
	Layer *config.Layer
	Cases []Case
	// Warnings lists the parts of the files that are ignored.
	Warnings []string
}

// Load finds all folders of a tree that have cases in testdata, or in a list of cases such as customizations_tests.yaml, and beside them
// Configs, or customizations that can be converted to Configs. The folders are in the order of their paths, and so are cases in that of
// their files. What cannot be read is a broken case; an error means that the tree itself cannot be read.
func Load(tree fs.FS, host *lua.Host) ([]Folder, error) {
	var folders []Folder
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		if entry.Name() == "testdata" {
			return fs.SkipDir
		}
		l := &loader{tree: tree, dir: name, listed: map[string]bool{}, Folder: Folder{Path: name}}
		if err := l.load(host); err != nil || len(l.Cases) == 0 && (!l.hasTestdata || len(l.Configs) == 0) {
			return err
		}
		folders = append(folders, l.Folder)
		return nil
	})
	slices.SortFunc(folders, func(a, b Folder) int { return strings.Compare(a.Path, b.Path) })
	return folders, err
}

// loader reads one folder.
type loader struct {
	Folder
	tree fs.FS
	dir  string
	// listed are the files that a list of cases names.
	listed      map[string]bool
	hasTestdata bool
	// unreadable are the Configs that cannot be read: they count if the folder has cases.
	unreadable []Case
}

func (l *loader) load(host *lua.Host) error {
	entries, err := fs.ReadDir(l.tree, l.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(l.dir, e.Name())
		switch {
		case e.IsDir():
			l.hasTestdata = l.hasTestdata || e.Name() == "testdata"
		case isList(e.Name()):
			l.readList(name)
		case isYAML(e.Name()):
			l.readConfigs(name)
		}
	}
	l.Layer = config.New(host, l.Configs, nil)
	if l.hasTestdata {
		if err := l.readTestdata(); err != nil {
			return err
		}
	}
	if len(l.Cases) > 0 && len(l.Configs)+len(l.unreadable) == 0 {
		err := fmt.Errorf("%s has cases, but no Config or customizations.yaml beside them", l.dir)
		l.unreadable = []Case{{Name: l.dir, Place: l.dir, Broken: err}}
	}
	if len(l.Cases) > 0 || l.hasTestdata {
		l.Cases = append(l.unreadable, l.Cases...)
	}
	return nil
}

// readConfigs adds the Configs of a file. A file of other kinds is none.
func (l *loader) readConfigs(name string) {
	text, err := read(l.tree, name)
	var configs []v1alpha1.Config
	var warnings []string
	if err == nil {
		configs, warnings, err = ReadConfigs(name, text)
	}
	var other *NotConfigError
	switch {
	case errors.As(err, &other):
	case err != nil:
		l.unreadable = append(l.unreadable, Case{Name: path.Base(name), Place: name, Broken: err})
	default:
		l.Configs = append(l.Configs, configs...)
		l.Warnings = append(l.Warnings, warnings...)
		l.checkPath(name, configs)
	}
}

// checkPath warns of customizations in a folder that is named after another kind than theirs: in trees of customizations, folders are
// named <group>/<version>/<Kind>.
func (l *loader) checkPath(file string, configs []v1alpha1.Config) {
	if strings.TrimSuffix(path.Base(file), path.Ext(file)) != "customizations" || l.dir == "." {
		return
	}
	have := strings.Split(l.dir, "/")
	for _, c := range configs {
		for _, e := range c.Spec.Explorations {
			want := strings.Split(e.APIVersion+"/"+e.Kind, "/")
			n := min(len(want), len(have))
			if !slices.Equal(have[len(have)-n:], want[len(want)-n:]) {
				l.Warnings = append(l.Warnings, fmt.Sprintf("%s: spec.target is %s %s, but the folder is %s: rename one of them", file, e.APIVersion,
					e.Kind, l.dir))
			}
		}
	}
}

// readTestdata adds the cases of all files in testdata.
func (l *loader) readTestdata() error {
	return fs.WalkDir(l.tree, path.Join(l.dir, "testdata"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !isYAML(name) && path.Ext(name) != ".json" {
			l.Warnings = append(l.Warnings, name+" is not read: cases are in files .yaml, .yml and .json")
			return nil
		}
		text, err := read(l.tree, name)
		if err != nil {
			l.Cases = append(l.Cases, Case{Name: path.Base(name), Place: name, Broken: err})
			return nil
		}
		for _, d := range documents(name, text) {
			switch {
			case d.isCase():
				l.Cases = append(l.Cases, d.asCase())
			case l.listed[name]:
			case d.field("apiVersion") != nil && d.field("kind") != nil:
				l.Warnings = append(l.Warnings, d.place+" is an object and no case, and no list of cases names its file")
			default:
				l.Cases = append(l.Cases, d.asCase())
			}
		}
		return nil
	})
}

func isYAML(name string) bool { return path.Ext(name) == ".yaml" || path.Ext(name) == ".yml" }

// read reads a regular file that is not too large. A pipe would never end.
func read(tree fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(tree, name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: replace it by one", name)
	}
	if err != nil {
		return nil, err
	}
	file, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return text, err
}
