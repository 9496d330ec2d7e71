namespace Inner
def twice (_ : Nat) : Nat := 3
theorem _root_.target : twice 1 = 3 := rfl
end Inner