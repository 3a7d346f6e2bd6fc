package gen

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
)

// Tarball packs documents of CustomResourceDefinitions, a file each: the same bytes for the same documents.
func Tarball(documents ...string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for i, text := range documents { // a buffer takes all
		_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf("crds/%d.yaml", i), Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
		_, _ = w.Write([]byte(text))
	}
	_ = w.Close()
	_ = z.Close()
	return out.Bytes()
}
