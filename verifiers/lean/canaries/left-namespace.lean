end Assay.Here
theorem target : 1 + 1 = 2 := rfl
namespace Assay.Here