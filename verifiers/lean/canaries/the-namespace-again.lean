namespace Assay.Here
theorem target : 1 + 1 = 2 := rfl
end Assay.Here