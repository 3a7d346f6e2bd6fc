package ui

import (
	"net/url"
	"strconv"
)

// pageSize is how many rows a page of a list has.
const pageSize = 100

// pager says which rows of a list a page has: those from From to To of Found, which count from 1.
type pager struct {
	From, To, Found int
	// Previous and Next are addresses; empty if there is no such page.
	Previous, Next string
	// first is the index of the first row.
	first int
}

// newPager returns the rows of a page, or of the last one if there are fewer pages. link returns the address of a page.
func newPager(found, page int, link func(page int) string) pager {
	last := max(1, (found+pageSize-1)/pageSize)
	page = min(page, last)
	p := pager{Found: found, first: (page - 1) * pageSize}
	p.From, p.To = p.first+1, min(page*pageSize, found)
	if page > 1 {
		p.Previous = link(page - 1)
	}
	if page < last {
		p.Next = link(page + 1)
	}
	return p
}

// pageOf returns which page an address names; the first one if it names none.
func pageOf(values url.Values) int {
	page, _ := strconv.Atoi(values.Get("page"))
	return max(1, page)
}

// linkTo returns the address of a page of a list. Values that are empty are left out.
func linkTo(path string, query map[string]string, page int) string {
	values := url.Values{}
	for name, value := range query {
		if value != "" {
			values.Set(name, value)
		}
	}
	if page > 1 {
		values.Set("page", strconv.Itoa(page))
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
