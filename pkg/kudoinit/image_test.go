package kudoinit

import "testing"

const (
	digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	other  = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

// TestMoveImage checks R7: --image-registry changes the place of the image and keeps its digest.
func TestMoveImage(t *testing.T) {
	const image = "registry.example.org:5000/kudo/manager" + digest
	for _, tc := range []struct{ to, want string }{
		{"mirror.example.com", "mirror.example.com/kudo/manager" + digest},
		{"localhost:5000", "localhost:5000/kudo/manager" + digest},
		{"mirror.example.com/a/b-c", "mirror.example.com/a/b-c/kudo/manager" + digest},
		{"", ""},
		{"https://mirror.example.com", ""},
		{"mirror.example.com/", ""},
		{"mirror.example.com/a@sha256:b", ""},
		{"mirror.example.com/a b", ""},
		{"mirror.example.com/a\nimage: x", ""},
	} {
		got, err := MoveImage(image, tc.to)
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%q: image %q and error %v, want %q", tc.to, got, err, tc.want)
		}
	}
}

// TestCheckImage checks R7: an image without digest, or with another one than the release's, is warned of.
func TestCheckImage(t *testing.T) {
	for _, tc := range []struct{ reason, own, image, want string }{
		{"a development build knows no image", "", "example.org/kudo" + digest, ""},
		{"the image of the release", "example.org/kudo" + digest, "example.org/kudo" + digest, ""},
		{"a copy of it", "example.org/kudo" + digest, "mirror.example.com/kudo" + digest, ""},
		{"another one", "example.org/kudo" + digest, "example.org/kudo" + other,
			"image example.org/kudo" + other + " is not the one that was released with this command, example.org/kudo" + digest},
		{"a tag", "example.org/kudo" + digest, "example.org/kudo:1",
			"image example.org/kudo:1 has no digest, so that its registry decides what runs with the manager's rights: name it with @sha256:…"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			defer func(image string) { Image = image }(Image)
			Image = tc.own
			if got := CheckImage(tc.image); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
