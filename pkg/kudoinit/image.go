package kudoinit

import (
	"fmt"
	"regexp"
	"strings"
)

// Image is the manager's image of this build, by its digest: registry.example.org/kudo/manager@sha256:…. The linker sets it when kudo is
// released; it is empty in every other build, which has no image.
var Image string

// registry is a host, with or without a port, and folders below it.
var registry = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

// MoveImage returns the name of an image in another registry. The path of the image below its registry stays, and so does its digest.
func MoveImage(image, to string) (string, error) {
	if !registry.MatchString(to) {
		return "", fmt.Errorf("%q: must be a registry and may have folders, such as registry.example.org/mirror", to)
	}
	_, path, _ := strings.Cut(image, "/")
	return to + "/" + path, nil
}

// CheckImage returns what is unsafe about an image of the manager that a user names; empty if nothing is.
func CheckImage(image string) string {
	_, digest, pinned := strings.Cut(image, "@")
	_, own, _ := strings.Cut(Image, "@")
	switch {
	case !pinned:
		return fmt.Sprintf("image %s has no digest, so that its registry decides what runs with the manager's rights: name it with @sha256:…",
			image)
	case own != "" && digest != own:
		return fmt.Sprintf("image %s is not the one that was released with this command, %s", image, Image)
	}
	return ""
}

// isOwn reports whether an image has the digest of Image, in whatever registry.
func isOwn(image string) bool {
	_, digest, _ := strings.Cut(image, "@")
	_, own, _ := strings.Cut(Image, "@")
	return digest == own
}
