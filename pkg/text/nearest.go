package text

import "strings"

// Nearest returns the entry of names that a user who wrote name probably meant: one that differs in upper and lower case
// only, or in few letters that are changed, left out, added or swapped. It returns the first of equally near entries, and
// "" if none is near.
func Nearest(name string, names []string) string {
	best, bestDistance := "", max(1, min(3, len(name)/3))+1
	if len(name) > 64 {
		return ""
	}
	for _, candidate := range names {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		if len(candidate) > len(name)+3 || len(candidate)+3 < len(name) {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the edits (Damerau-Levenshtein, by bytes) that turn a into b.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows[0], rows[1], rows[2] = last, row, before
	}
	return rows[1][len(b)]
}
