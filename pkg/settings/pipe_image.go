package settings

import (
	"errors"
	"fmt"
	"regexp"
)

var pinnedImage = regexp.MustCompile(`^[^@\s]+@sha256:[0-9a-f]{64}$`)

// CheckPipeImage refuses an image that has no digest: whoever moves its tag would run what he likes in the pods of Pipe
// tasks, and read and change their files.
func CheckPipeImage(image string) error {
	if pinnedImage.MatchString(image) {
		return nil
	}
	if image == "" {
		return errors.New("no image of Pipe tasks is named: start the manager with --pipe-image=<image>@sha256:<digest>, which is its own image")
	}
	return fmt.Errorf("--pipe-image %q has no digest: start the manager with --pipe-image=<image>@sha256:<digest>, or with "+
		"--allow-unpinned-pipe-image", image)
}
