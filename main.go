package main

import (
	"fmt"
	"quern/cgo"
)

func main() { fmt.Println(cgo.SystemInfo()) }
