module example.org/vulnerable

go 1.26
