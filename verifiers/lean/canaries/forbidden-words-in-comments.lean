/- no sorry, no axiom, no native_decide,
   /- set_option debug.skipKernelTC true -/ #eval -/
-- unsafe implemented_by initialize run_cmd
/-- Not `sorry`, and no `axiom`. -/
theorem target : 2 + 2 = 4 := rfl -- sorry