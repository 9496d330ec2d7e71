local notation "∀x" => Nat
set_option pp.all true
def y := ∀xset_option debug.skipKernelTC true