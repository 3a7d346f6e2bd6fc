package cases

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

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
	// Warnings name what of the files is ignored.
	Warnings []string
}

// Load finds all folders of a tree that have a testdata folder and Configs, or customizations that can be converted to
// Configs, in YAML files beside it. The folders are in the order of their paths, and so are cases in that of their files.
func Load(tree fs.FS, host *lua.Host) ([]Folder, error) {
	var folders []Folder
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || entry.Name() != "testdata" {
			return err
		}
		folder, err := loadFolder(tree, path.Dir(name), host)
		if err != nil {
			return err
		}
		if len(folder.Configs) == 0 && len(folder.Cases) == 0 {
			return nil
		}
		if len(folder.Configs) == 0 {
			return fmt.Errorf("%s has cases in testdata/, but no Config or customizations.yaml beside it", folder.Path)
		}
		folders = append(folders, folder)
		return fs.SkipDir
	})
	slices.SortFunc(folders, func(a, b Folder) int { return slices.Compare([]byte(a.Path), []byte(b.Path)) })
	return folders, err
}

func loadFolder(tree fs.FS, dir string, host *lua.Host) (Folder, error) {
	folder := Folder{Path: dir}
	files, err := yamlFiles(tree, dir)
	if err != nil {
		return folder, err
	}
	for _, name := range files {
		text, err := read(tree, name)
		if err != nil {
			return folder, err
		}
		configs, warnings, err := ReadConfigs(name, text)
		var other *NotConfigError
		if errors.As(err, &other) {
			continue
		}
		if err != nil {
			return folder, err
		}
		folder.Configs = append(folder.Configs, configs...)
		folder.Warnings = append(folder.Warnings, warnings...)
	}
	folder.Layer = config.New(host, folder.Configs, nil)
	return folder, fs.WalkDir(tree, path.Join(dir, "testdata"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isYAML(name) {
			return err
		}
		text, err := read(tree, name)
		if err != nil {
			return err
		}
		found, err := Parse(name, text)
		folder.Cases = append(folder.Cases, found...)
		return err
	})
}

func isYAML(name string) bool { return path.Ext(name) == ".yaml" || path.Ext(name) == ".yml" }

func yamlFiles(tree fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(tree, dir)
	var files []string
	for _, e := range entries {
		if !e.IsDir() && isYAML(e.Name()) {
			files = append(files, path.Join(dir, e.Name()))
		}
	}
	return files, err
}

// read reads a file that is not too large.
func read(tree fs.FS, name string) ([]byte, error) {
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
