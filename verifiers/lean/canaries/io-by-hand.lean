def x := match (IO.FS.writeFile "x" "y" : EIO _ _) () with | _ => 1
theorem target : 2 + 2 = 5 := rfl