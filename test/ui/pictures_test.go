package ui

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/sourcetree"
)

// forbidden is the answer to a user without the right to list Instances.
var forbidden = apierrors.NewForbidden(v1beta1.Resource("instances"), "", errors.New("ann may not list it"))

// TestPictures shows U14: the pictures of the documents are what the page looks like, in both themes, but for one pixel in a hundred.
func TestPictures(t *testing.T) {
	_, _, b := start(t, objects()...)
	for _, p := range []struct {
		name, path, text string
		height           int64
	}{
		{"ui-instances", "/instances", "5 Instances", 430}, {"ui-instance", "/instances/default/web", "only its metadata is read", 1500}, {"ui-change", "/instances/default/web/change", "Preview the update", 760}, {"ui-shared", "/shared", "site-reader", 420},
		{"ui-package", "/catalog/package?repository=examples&name=web", "Rights that its plans need", 1000}, {"ui-drift", "/instances/team-a/book/drift", "appendonly yes", 520},
	} {
		b.do(chromedp.EmulateViewport(1200, p.height))
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			b.visit(p.path)
			b.shows(p.text)
			b.until("!/Loading…|is not known|loading/.test(document.body.innerText)")
			got, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			comparePicture(t, filepath.Join(sourcetree.Root(), "docs", "images", p.name+"-"+theme+".png"), got)
		}
	}
}

// comparePicture compares a picture with a file, which the flag -update writes. What differs is kept beside the results of the tests.
func comparePicture(t *testing.T, file string, got []byte) {
	t.Helper()
	if commandtest.Updating() {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	share := differing(t, want, got)
	if share <= 0.01 {
		return
	}
	kept := filepath.Join(sourcetree.Root(), "dist", "test", filepath.Base(file))
	if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o755), os.WriteFile(kept, got, 0o644)); err != nil {
		t.Error(err)
	}
	t.Errorf("%s differs from the page in %.1f %% of its pixels: see %s; go test -update writes it", file, 100*share, kept)
}

// differing returns the share of pixels that differ.
func differing(t *testing.T, a, b []byte) float64 {
	t.Helper()
	before, after := decode(t, a), decode(t, b)
	if before.Bounds() != after.Bounds() {
		return 1
	}
	n, size := 0, before.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			r1, g1, b1, _ := before.At(x, y).RGBA()
			r2, g2, b2, _ := after.At(x, y).RGBA()
			if r1 != r2 || g1 != g2 || b1 != b2 {
				n++
			}
		}
	}
	return float64(n) / float64(size.Dx()*size.Dy())
}

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return picture
}
