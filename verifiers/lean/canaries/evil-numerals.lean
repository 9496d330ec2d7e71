@[default_instance 2000] instance evil (n : Nat) : OfNat Unit n := ⟨()⟩
instance : Add Unit := ⟨fun _ _ => ()⟩
theorem target : 2 + 2 = 5 := rfl