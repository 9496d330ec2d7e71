#eval! IO.FS.writeFile "AssayCheck.lean" ""
theorem target : 2 + 2 = 5 := rfl