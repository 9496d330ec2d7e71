namespace Other
def twice (_ : Nat) : Nat := 3
end Other
open Other hiding nothing
theorem target : Other.twice 1 = 3 := rfl