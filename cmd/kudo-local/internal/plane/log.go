package plane

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxTail bounds how much of a log is read to find its last lines.
const maxTail = 1 << 20

// lastLines returns the last lines of a log, for people.
func lastLines(path string, lines int) string {
	end, _, err := Tail(path, lines)
	if err != nil {
		return err.Error()
	}
	if len(end) == 0 {
		return "(the log is empty)"
	}
	return strings.TrimRight(string(end), "\n")
}

// Tail returns the last lines of a file, all of them when lines is negative,
// and the offset after them.
func Tail(path string, lines int) (end []byte, offset int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("opening the log: %w", err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the log: %w", err)
	}
	from := int64(0)
	if lines >= 0 {
		from = max(0, size-maxTail)
	}
	if end, err = io.ReadAll(io.NewSectionReader(f, from, size-from)); err != nil {
		return nil, 0, fmt.Errorf("reading the log: %w", err)
	}
	if lines < 0 {
		return end, size, nil
	}
	all := bytes.SplitAfter(end, []byte("\n"))
	if len(all) > 0 && len(all[len(all)-1]) == 0 {
		all = all[:len(all)-1]
	}
	return bytes.Join(all[max(0, len(all)-lines):], nil), size, nil
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
